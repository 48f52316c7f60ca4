/** A change of the source that breaks one rule of the protocol. */
export interface Mutant {
	/** Describes the fault. */
	readonly name: string;
	/** A seed that finds the fault. If it no longer does, other seeds are tried, which takes minutes. */
	readonly seed: number;
	/** Relative to `src`. */
	readonly file: string;
	/** Occurs in the file exactly once. */
	readonly find: string;
	readonly replace: string;
}

/** One for each rule of the protocol that closes a hole. */
export const mutants: readonly Mutant[] = [
	{
		name: "decide no without changing the guard",
		seed: 4,
		file: "protocol/final-decisions.ts",
		find: `const version = await context.guards.change(target);
			await context.index.reached(version, signal);`,
		replace: "signal.throwIfAborted();",
	},
	{
		name: "read the guard after establishing",
		seed: 90,
		file: "commit/reference-plan.ts",
		find: `for (const guard of await guards.asserts(targets)) {
			this.#plan.assert((guard.op === "put" ? guard.resource.id : guard.id)?.name ?? "", guard);
		}
		const toleratesMissing = this.#derivation !== undefined;
		this.#established = await establish(this.#context, this.#foreign, caller, toleratesMissing);`,
		replace: `const toleratesMissing = this.#derivation !== undefined;
		this.#established = await establish(this.#context, this.#foreign, caller, toleratesMissing);
		for (const guard of await guards.asserts(targets)) {
			this.#plan.assert((guard.op === "put" ? guard.resource.id : guard.id)?.name ?? "", guard);
		}`,
	},
	{
		name: "drop a source without compare-and-swap",
		seed: 44,
		file: "controller/owned-pending-handler.ts",
		find: `const next = withoutDeployment(stored.shadow, deployment.uid);
			const replaced = await replaceShadow(this.#context, stored, next);
			return replaced === "conflict" ? { requeueAfterMs: limits.maxRetryDelayMs } : done;`,
		replace: `await updateShadow(this.#context, stored.name, ({ shadow }) =>
				sourceOf(shadow, deployment.uid) && shadow.lifecycle === Lifecycle.ACTIVE
					? withoutDeployment(shadow, deployment.uid)
					: undefined,
			);
			return done;`,
	},
	{
		name: "drop on expiry without a query",
		seed: 3,
		file: "controller/owned-pending-handler.ts",
		find: "const response = await this.#holderQuery.one(stored, deployment);",
		replace: `if (!isHinted) {
			const without = withoutDeployment(stored.shadow, deployment.uid);
			await replaceShadow(this.#context, stored, without);
			return done;
		}
		const response = await this.#holderQuery.one(stored, deployment);`,
	},
	{
		name: "announce CHECKING",
		seed: 3,
		file: "shadow/held-deletions.ts",
		find: "shadow.lifecycle === Lifecycle.DELETING",
		replace: "shadow.lifecycle !== Lifecycle.ACTIVE",
	},
	{
		name: "revert DELETING",
		seed: 3,
		file: "controller/owned-pending-handler.ts",
		find: "if (stored.shadow.lifecycle === Lifecycle.CHECKING) {",
		replace: "if (stored.shadow.lifecycle !== Lifecycle.ACTIVE) {",
	},
	{
		name: "act on a deletion by name instead of uid",
		seed: 162,
		file: "controller/subscribed-deleting-handler.ts",
		find: "sameTarget(each.target, target) && each.targetUid === uid",
		replace: "sameTarget(each.target, target) && uid !== each.path",
	},
	{
		name: "count references of resources that are irrevocably deleted",
		seed: 6,
		file: "protocol/holder-decision.ts",
		find: "isDeletionIrrevocable(resource)",
		replace: "false",
	},
	{
		name: "remove the last owner reference before deleting",
		seed: 40,
		file: "controller/meta-owners.ts",
		find: "await this.#store.commit([...deletion(runtime, resource), ...asBefore]);",
		replace: `const free = { ...resource, ownerReferences: left, generation: newUlid(runtime) };
				const { resources } = await this.#store.commit([
					{ op: "put", resource: free, expectedVersion: resource.version },
				]);
				await this.#store.commit(deletion(runtime, resources[0] ?? free));`,
	},
	{
		name: "treat not known as not valid",
		seed: 116,
		file: "controller/meta-owners.ts",
		find: "if (verdict === undefined || verdict === Verdict.UNSPECIFIED) {",
		replace: "if (limits.requeryMs < 0) {",
	},
	{
		name: "drop a source that is absent from the registry view",
		seed: 2,
		file: "protocol/holder-query.ts",
		find: "if (await this.#context.environment.isDeleted(deployment.uid)) {",
		replace: `const known = this.#context.environment.deployments();
			if (!known.some(({ uid }) => uid === deployment.uid)) {`,
	},
	{
		name: "drop the own source outside CHECKING",
		seed: 24,
		file: "controller/owned-pending-handler.ts",
		find: `if (deployment === undefined || deployment.uid === environment.self.uid) {
			return done;
		}`,
		replace: `if (deployment === undefined) {
			return done;
		}
		if (deployment.uid === environment.self.uid) {
			const { index } = this.#context;
			const { resource, lifecycle } = stored.shadow;
			if (lifecycle === Lifecycle.ACTIVE && resource && [...index.referencing(resource)].length === 0) {
				const without = withoutDeployment(stored.shadow, deployment.uid);
				await replaceShadow(this.#context, stored, without);
			}
			return done;
		}`,
	},
	{
		name: "decide yes, CASCADE without changing the guard",
		seed: 34,
		file: "protocol/final-decisions.ts",
		find: "if (first.rules.includes(OnDelete.BLOCK)) {",
		replace: "if (first.rules.length > 0 || OnDelete.BLOCK < 0) {",
	},
	{
		name: "establish without asserting the target",
		seed: 153,
		file: "protocol/establish-sources.ts",
		find: 'const exists: Mutation = { op: "assert", id: target.id, uid };',
		replace: `const id = { ...target.id, name: "nobody" };
		const exists: Mutation = { op: "assert", id, expectedVersion: "" };`,
	},
	{
		name: "mark without making the shadow DELETING",
		seed: 23,
		file: "commit/commit-attempt.ts",
		find: "left.next = { ...shadow, lifecycle: Lifecycle.DELETING };",
		replace: "left.next = { ...shadow, lifecycle: Lifecycle.ACTIVE };",
	},
	{
		name: "still enforce BLOCK in a marked namespace",
		seed: 75,
		file: "protocol/holder-decision.ts",
		find: "isBlocking && (await isInMarkedTenancy(backend, resource))",
		replace: "uses.length < 0 && (await isInMarkedTenancy(backend, resource))",
	},
	{
		name: "retry a waiting deletion with each change of its name",
		seed: 1070,
		file: "controller/db-constraint-controller.ts",
		find: "if (waitMs > 0) {",
		replace: "if (waitMs > Number.MAX_VALUE) {",
	},
	{
		name: "never free a slot of the limiter",
		seed: 134,
		file: "controller/concurrency-limiter.ts",
		find: "const left = (this.#used.get(key) ?? 1) - 1;",
		replace: "const left = this.#used.get(key) ?? 1;",
	},
	{
		name: "put names of shadows without waking their reader",
		seed: 6,
		file: "controller/name-queue.ts",
		find: `this.#waiting.add(name);
		this.#wake.resolve();`,
		replace: "this.#waiting.add(name);",
	},
	{
		name: "forget when a shadow is due again",
		seed: 2,
		file: "controller/db-constraint-controller.ts",
		find: "const results = [await this.#handlers.handleShadow(name)];",
		replace: `await this.#handlers.handleShadow(name);
		const results: HandlerResult[] = [];`,
	},
	{
		name: "accept the deletions of this deployment alone",
		seed: 3,
		file: "controller/db-constraint-controller.ts",
		find: "const name = this.#inbox.add(deletion);",
		replace: `const isOwn = deletion.deploymentUid === this.#constraints.context.environment.self.uid;
		const name = isOwn ? this.#inbox.add(deletion) : undefined;`,
	},
	{
		name: "leave a check of a crashed server CHECKING",
		seed: 14,
		file: "controller/owned-pending-handler.ts",
		find: "if (age < checkingMs) {",
		replace: "if (age >= 0) {",
	},
	{
		name: "serve before the other deployments are known",
		seed: 24,
		file: "node/open-references.ts",
		find: "await registry.ready(ends);",
		replace: "ends.throwIfAborted();",
	},
	{
		name: "complete the schema in one attempt",
		seed: 17,
		file: "node/retried-steps.ts",
		find: "await backoff.wait(signal);",
		replace: "throw new Error(what);",
	},
	{
		name: "control shadows only until the version is switched",
		seed: 40,
		file: "controller/reference-manager.ts",
		find: `await this.#controllers?.stop();
		this.#controllers = startVersionControllers(version, {`,
		replace: `await this.#controllers?.stop();
		this.#controllers ??= startVersionControllers(version, {`,
	},
	{
		name: "begin a schema without making it the active one",
		seed: 0,
		file: "node/open-references.ts",
		find: "await constraints.schemaPass.begin();",
		replace: "await Promise.resolve();",
	},
	{
		name: "leave the record of a server that has died",
		seed: 1,
		file: "node/endpoint-records.ts",
		find: "if (name !== own && !this.#removing.has(name)) {",
		replace: "if (this.#removing.size > 0) {",
	},
	{
		name: "remove the record of a server that runs",
		seed: 2,
		file: "node/endpoint-records.ts",
		find: `const hold = await leases.acquire(name, signal).catch(() => undefined);
			if (hold !== undefined) {
				const address`,
		replace: `const hold = await leases.acquire(\`other \${name}\`, signal).catch(() => undefined);
			if (hold !== undefined) {
				const address`,
	},
	{
		name: "take the record of a server as it was a while ago",
		seed: 41,
		file: "node/endpoint-records.ts",
		find: 'const stored = await readRecord(backend, name, { consistency: "strong" });\n\t\t\t\tif',
		replace: "const stored = await readRecord(backend, name);\n\t\t\t\tif",
	},
	{
		name: "stay registered at an address where no server runs",
		seed: 1,
		file: "node/open-references.ts",
		find: "!endpoints.has(endpointName(registry.registeredAddress));",
		replace: 'registry.registeredAddress === "";',
	},
	{
		name: "respond to calls that are meant for another deployment",
		seed: 311,
		file: "protocol/schema-mixin-service.ts",
		find: "if (route.toUid !== uid) {",
		replace: 'if (route.toUid === "") {',
	},
];
