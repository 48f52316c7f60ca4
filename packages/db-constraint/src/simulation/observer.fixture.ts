import { equals } from "@bufbuild/protobuf";
import type { ID, Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import {
	DeletionProgressSchema,
	Lifecycle,
	type OutgoingReference,
	type Shadow,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { decodeShared, finalizersOf, isMarkedForDeletion, Namespace } from "@plinth/resource";
import type { Fence } from "@plinth/runtime";
import type { CommitResult, Mutation } from "@plinth/storage";
import { keyOfShadow } from "../commit/commit-plan.ts";
import { isDeletionIrrevocable } from "../protocol/holder-decision.ts";
import { keyOf, keyString } from "../shadow/resource-key.ts";
import { referencesFinalizer, sourceOf } from "../shadow/shadow.ts";
import { ResourceShadow, recordOf, shadowOf } from "../shadow/shadow-records.ts";
import {
	derivedBy,
	isOf,
	isResolved,
	recordIn,
	referencesOf,
} from "./derived-references.fixture.ts";
import { explainDeletion, Requests, unexplainedChange } from "./explanations.fixture.ts";
import { LeftReferences } from "./left-references.fixture.ts";
import { ObservedLosses } from "./observed-losses.fixture.ts";
import { ObservedVersions } from "./observed-versions.fixture.ts";
import type { SimulatedDeployment } from "./participants.fixture.ts";
import { Records } from "./records.fixture.ts";
import type { SimulatedSchema } from "./schemas.fixture.ts";
import type { Trace } from "./trace.fixture.ts";
import { describeResource, describeShadow } from "./trace-format.fixture.ts";
import {
	type TrackedReference,
	type TrackedResource,
	unresolved,
} from "./tracked-resources.fixture.ts";

/** A broken promise, by its number in docs/references.md. */
export interface Violation {
	readonly promise: 1 | 2 | 3 | 4;
	readonly message: string;
}

/** A resource before and after a commit. */
interface Change {
	readonly text: string;
	readonly before: TrackedResource | undefined;
	readonly after: TrackedResource | undefined;
}

/**
 * Checks every commit of every deployment against the promises, in the order of the commits. It uses only what
 * is stored and what users requested, never the state of servers.
 */
export class Observer {
	readonly records = new Records();
	readonly requests = new Requests();
	readonly violations: Violation[] = [];
	readonly #trace: Trace;
	readonly #losses: ObservedLosses;
	readonly #versions: ObservedVersions | undefined;
	/** The greatest establishment number of each target. */
	readonly #establishments = new Map<string, bigint>();
	/** The resource of each shadow, by deployment and name of the record. */
	readonly #shadowed = new Map<string, string>();
	/** The shadows that the commit which is being checked has changed, as they were before. */
	readonly #shadowsBefore = new Map<string, Shadow | undefined>();

	/** @param versionsDiffer - whether versions of types are switched, instead of rules. */
	constructor(trace: Trace, versionsDiffer = false) {
		this.#trace = trace;
		this.#versions = versionsDiffer ? new ObservedVersions(this.records) : undefined;
		this.#losses = new ObservedLosses(this.records, this.requests);
	}

	/**
	 * Remembers what a deployment stores now. The returned function is to be called when its storage is restored to this
	 * state.
	 */
	backUp(deployment: SimulatedDeployment): () => void {
		return this.#losses.backUp(deployment, () => this.#shadowedBy(deployment));
	}

	/** A Deployment was deleted from the meta deployment. */
	deploymentDeleted(uid: string): void {
		this.#losses.deploymentDeleted(uid);
	}

	/** A deployment whose Deployment is deleted has no servers any longer, and never will have. */
	gone(deployment: SimulatedDeployment): void {
		this.#losses.gone(deployment, this.#shadowedBy(deployment));
	}

	#shadowedBy({ info }: SimulatedDeployment): readonly string[] {
		return [...this.#shadowed].flatMap(([record, text]) =>
			record.startsWith(`${info.name} `) ? text : [],
		);
	}

	/** Reports a failure of a handler. Only simulated faults may cause one. */
	failed(name: string, failure: unknown): void {
		this.#trace.add(name, () => `fails: ${failure}`);
		if (failure instanceof TypeError || failure instanceof RangeError) {
			this.violation(3, `${name}: ${failure.stack}`);
		}
	}

	/** Reports a broken promise. */
	violation(promise: Violation["promise"], message: string): void {
		this.violations.push({ promise, message });
		this.#trace.add("observer", () => `PROMISE ${promise} IS BROKEN: ${message}`);
	}

	/** Checks a commit. */
	onCommit(
		deployment: SimulatedDeployment,
		mutations: readonly Mutation[],
		{ version, resources }: CommitResult,
		fence: Fence | undefined,
	): void {
		if (this.records.identityOf(deployment).state === "gone") {
			return;
		}
		const changes: Change[] = [];
		const touched = new Set<string>();
		this.#shadowsBefore.clear();
		for (const [at, mutation] of mutations.entries()) {
			const stored = resources[at];
			const id = stored?.id ?? (mutation.op === "delete" ? mutation.id : undefined);
			if (id?.type === undefined || mutation.op === "assert") {
				continue;
			}
			const committed = { deployment, version, id, stored };
			if (id.type.kind === ResourceShadow.type.kind) {
				touched.add(this.#shadow(committed));
				this.#refusal(committed);
				for (const text of [...this.#schema(committed), ...this.#identity(committed)]) {
					touched.add(text);
				}
			} else if (id.type.kind === Namespace.type.kind) {
				this.#namespace(committed);
			} else if (id.type.group === deployment.service.type.type.group) {
				changes.push(this.#resource(committed));
			}
		}
		this.#checkFence(fence);
		for (const change of changes) {
			touched.add(change.text);
			this.#check(this.#resolved(change));
			this.#checkVersions(this.#versions?.stored(change.before, change.after));
		}
		for (const text of touched) {
			this.#follow(text);
		}
		for (const text of touched) {
			this.#checkTarget(text);
			const tracked = this.records.resources.get(text);
			if (tracked !== undefined && !isDeletionIrrevocable(tracked.resource)) {
				this.#checkReferences(tracked);
			}
		}
	}

	/** Only a pass of a controller reports how far a deletion is. What it writes carries the fence of its shard. */
	#checkFence(fence: Fence | undefined): void {
		for (const [text, before] of this.#shadowsBefore) {
			const progress = this.records.shadows.get(text)?.progress;
			const isSame =
				progress === undefined ||
				(before?.progress !== undefined &&
					equals(DeletionProgressSchema, progress, before.progress));
			if (!isSame && fence === undefined) {
				this.violation(4, `a pass over ${text} committed without the fence of its shard`);
			}
		}
	}

	/** The numbers of establishments grow: otherwise, late confirmations of earlier ones would be taken for the newest. */
	#numbers(text: string, before: Shadow | undefined, after: Shadow | undefined): void {
		for (const { deployment, establishment } of after?.sources ?? []) {
			const known = before && sourceOf(before, deployment?.uid ?? "")?.establishment;
			if (establishment === 0n || establishment === known) {
				continue;
			}
			const greatest = this.#establishments.get(text) ?? 0n;
			if (establishment <= greatest) {
				this.violation(2, `${text} got the establishment #${establishment} after #${greatest}`);
			}
			this.#establishments.set(text, establishment);
		}
	}

	#shadow({ deployment, version, id, stored }: Committed): string {
		const record = `${deployment.info.name} ${id.name}`;
		const shadow = stored && shadowOf(stored)?.shadow;
		const text = shadow && keyString(keyOfShadow(shadow));
		const known = text ?? this.#shadowed.get(record) ?? "";
		if (known === "") {
			this.#trace.add(deployment.info.name, () => `@${version} ${id.name} changes`);
			return "";
		}
		this.#shadowed.set(record, known);
		const before = this.records.shadows.get(known);
		this.#shadowsBefore.set(known, before);
		if (shadow === undefined) {
			this.records.shadows.delete(known);
			if (before?.lifecycle === Lifecycle.DELETING) {
				this.records.deleted.add(before.uid);
			}
		} else {
			this.records.shadows.set(known, shadow);
		}
		this.#trace.add(
			deployment.info.name,
			() => `@${version} shadow of ${known}: ${describeShadow(shadow)}`,
		);
		this.#numbers(known, before, shadow);
		if (
			before?.lifecycle === Lifecycle.DELETING &&
			shadow?.uid === before.uid &&
			shadow.lifecycle !== Lifecycle.DELETING
		) {
			this.violation(4, `DELETING of ${known} was taken back`);
		}
		return known;
	}

	/** Handles a change of the schema record. Returns the resources that must be derived by now. */
	#schema({ deployment, id, stored }: Committed): readonly string[] {
		const record = stored && recordOf(stored).record;
		if (record?.case !== "descriptor") {
			return [];
		}
		const { fingerprint, complete } = record.value;
		const { schemas, versions } = deployment.service;
		const schema = [...schemas, ...Object.values(versions)].find(
			({ descriptor }) => descriptor.fingerprint === fingerprint,
		);
		if (schema === undefined) {
			this.violation(4, `${deployment.info.name} has a schema in ${id.name} that no server has`);
			return [];
		}
		const before = this.records.activeSchemas.get(deployment);
		if (before !== undefined && before.schema !== schema) {
			this.#checkVersions(this.#versions?.activated(deployment, before.schema, schema));
		}
		const hasChanged = before !== undefined && (before.hasChanged || before.schema !== schema);
		this.records.activeSchemas.set(deployment, { schema, complete, hasChanged });
		const what = complete ? "is complete" : "becomes active";
		this.#trace.add(deployment.info.name, () => `schema "${schema.name}" ${what}`);
		return complete
			? [...this.records.resources.values()]
					.filter((each) => each.deployment === deployment)
					.map(({ text }) => text)
			: [];
	}

	/** Handles a change of the identity. Returns the resources whose references must be established by now. */
	#identity({ deployment, stored }: Committed): readonly string[] {
		const record = stored && recordOf(stored).record;
		if (record?.case !== "deployment") {
			return [];
		}
		const { records } = this;
		const identity = records.identityOf(deployment);
		if (identity.isGivenUp(record.value)) {
			this.violation(4, `${deployment.info.name} gives up the uid ${identity.uid} without reason`);
		}
		const settles = identity.recorded(record.value);
		const own = [...records.resources.values()].filter((each) => each.deployment === deployment);
		const reported = this.#losses.reported(deployment);
		for (const { text, references } of reported) {
			for (const held of references) {
				const recorded = this.#recorded(text, held);
				const isLate =
					records.storageOf(held.target) === deployment &&
					recorded?.targetUid &&
					recorded.deploymentUid !== record.value.uid;
				if (isLate) {
					this.violation(
						2,
						`${text} references ${held.text}, and has not established that with the successor, though that is reported`,
					);
				}
			}
		}
		return [...(settles ? own : []), ...reported].map(({ text }) => text);
	}

	/** Handles the record of a deployment that is refused from then on. */
	#refusal({ deployment, stored }: Committed): void {
		const record = stored && recordOf(stored).record;
		if (record?.case === "dropped" || record?.case === "succeeded") {
			const identity = this.records.identityOf(deployment);
			identity.refused = new Set([...identity.refused, record.value.uid]);
		}
	}

	#checkVersions(problem: string | undefined): void {
		if (problem !== undefined) {
			this.violation(4, problem);
		}
	}

	/** The record of a reference in the shadow of its resource. */
	#recorded(text: string, held: TrackedReference): OutgoingReference | undefined {
		return recordIn(this.records.shadows.get(text)?.outgoing ?? [], held);
	}

	#activeSchema(deployment: SimulatedDeployment): SimulatedSchema {
		return this.records.activeSchemas.get(deployment)?.schema ?? deployment.service.schemas[0];
	}

	/**
	 * Switches a resource to the active schema once its shadow has been derived, or all must be derived, or to the part that
	 * a write has not left for that. A reference without a target gets one once the shadow names it.
	 */
	#follow(text: string): void {
		const before = this.records.resources.get(text);
		if (before === undefined) {
			return;
		}
		const isComplete = this.records.activeSchemas.get(before.deployment)?.complete ?? false;
		const derived = derivedBy(before, this.#activeSchema(before.deployment));
		const { expected } = this.#leftBy(before, derived);
		const isDerived = isComplete || this.#isRecorded(expected);
		if (before.schema !== derived.schema && isDerived) {
			this.#resolved({ text, before, after: derived });
		} else if (before.references.some(({ uid }) => uid === unresolved)) {
			this.#resolved({ text, before, after: before });
		}
		this.#resume(text);
	}

	/** Suspended references are promised something again once they are established. */
	#resume(text: string): void {
		const tracked = this.records.resources.get(text);
		const references = tracked?.references.map((held) =>
			this.#losses.resumed(tracked, held, this.#recorded(text, held)),
		);
		if (tracked && references?.some((held, at) => held !== tracked.references[at])) {
			this.records.store({ ...tracked, references });
		}
	}

	/** What a change leaves for the derivation of the active schema. */
	#leftBy(before: TrackedResource | undefined, after: TrackedResource): LeftReferences {
		const isComplete = this.records.activeSchemas.get(after.deployment)?.complete ?? false;
		const outgoing = this.records.shadows.get(after.text)?.outgoing ?? [];
		return new LeftReferences(isComplete ? after : (before ?? after), after, outgoing);
	}

	/** Whether the shadow has these references, whatever their target uids. */
	#isRecorded({ text, references }: TrackedResource): boolean {
		const outgoing = this.records.shadows.get(text)?.outgoing ?? [];
		return (
			outgoing.length === references.length &&
			references.every((held) => outgoing.some((each) => isOf(each, held)))
		);
	}

	#namespace({ deployment, version, id, stored }: Committed): void {
		const unit = `${deployment.info.name}/${id.name}`;
		if (stored !== undefined && isMarkedForDeletion(stored)) {
			this.records.markedNamespaces.add(unit);
		} else {
			this.records.markedNamespaces.delete(unit);
		}
		const what = () => `@${version} namespace ${id.name}: ${describeResource(stored)}`;
		this.#trace.add(deployment.info.name, what);
	}

	#resource({ deployment, version, id, stored }: Committed): Change {
		const text = keyString(keyOf(id, deployment.info.region));
		const before = this.records.resources.get(text);
		this.#trace.add(deployment.info.name, () => `@${version} ${text}: ${describeResource(stored)}`);
		if (stored === undefined) {
			this.records.remove(text);
			return { text, before, after: undefined };
		}
		const isSame = before !== undefined && before.resource.data === stored.data;
		const active = this.#activeSchema(deployment);
		const { schema, references } = isSame
			? before
			: { schema: active, references: referencesOf(deployment, active, stored, before) };
		const uid = stored.id?.uid ?? "";
		const after = { deployment, text, uid, resource: stored, schema, references };
		this.records.store(after);
		return { text, before, after };
	}

	/**
	 * Resolves new references to the targets that exist after their commit. Those by an earlier schema get none any longer, and
	 * the shadow may be derived by the active one already: see `#follow`.
	 */
	#resolved(change: Change): Change {
		const { text, before, after } = change;
		if (after === undefined || after.schema !== this.#activeSchema(after.deployment)) {
			return change;
		}
		const left = this.#leftBy(before, after);
		const { expected } = left;
		if (expected.references.every(isResolved)) {
			if (expected !== this.records.resources.get(text)) {
				this.records.store(expected);
			}
			return { text, before, after: expected };
		}
		// A change that no user made was derived by a schema, and its targets may be missing.
		const isDerived = before !== undefined && noteOf(before) === noteOf(after);
		const outgoing = this.records.shadows.get(text)?.outgoing ?? [];
		const references = expected.references.map((held): TrackedReference => {
			if (isResolved(held)) {
				return held;
			}
			const recorded = recordIn(outgoing, held);
			const recordedUid = recorded?.targetUid;
			const mayMiss = isDerived || left.isUnrecorded(held);
			if (held.uid === unresolved ? !recordedUid : recordedUid === "" && mayMiss) {
				return { ...held, uid: unresolved };
			}
			const suspended = this.#losses.suspends(after, held, recorded);
			if (suspended !== undefined) {
				return suspended;
			}
			const target = this.records.resources.get(held.text);
			if (target === undefined) {
				this.violation(
					1,
					`${text} was stored with ${held.path} to ${held.text}, which does not exist`,
				);
			} else if (
				this.#isBeingDeleted(target) &&
				!(isDerived && holds(after, target)) &&
				!left.isHeld(held, target.uid)
			) {
				this.violation(
					4,
					`${text} was stored with ${held.path} to ${held.text}, which is being deleted`,
				);
			}
			return { ...held, uid: target?.uid ?? "missing" };
		});
		const resolved = { ...expected, references };
		this.records.store(resolved);
		return { text, before, after: resolved };
	}

	#isBeingDeleted({ text, uid, resource }: TrackedResource): boolean {
		return isMarkedForDeletion(resource) || this.records.isDeleting(text, uid);
	}

	/** Promise 4. */
	#check({ text, before, after }: Change): void {
		if (before === undefined) {
			return;
		}
		const { records, requests } = this;
		const shadow = this.#shadowsBefore.has(text)
			? this.#shadowsBefore.get(text)
			: records.shadows.get(text);
		const marked = after === undefined || isMarkedForDeletion(after.resource);
		if (marked && !isMarkedForDeletion(before.resource)) {
			const why = explainDeletion(records, requests, before, shadow);
			if (why === undefined) {
				this.violation(4, `${text} is deleted without reason`);
			}
			for (const [referrer, { path, rule, uid, isSuspended }] of records.referencing(text)) {
				const blocks =
					rule === OnDelete.BLOCK && !isSuspended && !records.isInMarkedNamespace(referrer);
				if (blocks && uid === before.uid) {
					this.violation(4, `${text} is deleted though ${referrer.text} blocks it with ${path}`);
				}
			}
		}
		if (after === undefined) {
			const released = requests.releases.has(before.uid);
			if (!released && finalizersOf(before.resource).some((it) => it !== referencesFinalizer)) {
				this.violation(4, `${text} was removed with a finalizer of a user`);
			}
		} else if (noteOf(before) === noteOf(after)) {
			// What is left for a derivation says nothing of the fields: both by the active schema.
			const active = this.#activeSchema(after.deployment);
			const [had, has] = [derivedBy(before, active), derivedBy(after, active)];
			const problem = unexplainedChange(records, requests, had, has, shadow);
			if (problem !== undefined) {
				this.violation(4, `${text}: ${problem}`);
			}
		}
	}

	/** Promises 1 and 2, for all references to it. */
	#checkTarget(text: string): void {
		const target = this.records.resources.get(text);
		const shadow = this.records.shadows.get(text);
		for (const [referrer, held] of this.records.referencing(text)) {
			this.#checkHeld(referrer, held, target, shadow);
		}
	}

	/** Promises 1 and 2, for all of its references, which its shadow must record. */
	#checkReferences(tracked: TrackedResource): void {
		const { text, references } = tracked;
		for (const held of references) {
			const { resources, shadows } = this.records;
			this.#checkHeld(tracked, held, resources.get(held.text), shadows.get(held.text));
		}
		const outgoing = this.records.shadows.get(text)?.outgoing ?? [];
		const isSame =
			outgoing.length === references.length &&
			references.every((held) =>
				outgoing.some(
					(each) =>
						isOf(each, held) && (held.isSuspended || (each.targetUid || unresolved) === held.uid),
				),
			);
		if (!isSame) {
			this.violation(
				2,
				`the shadow of ${text} does not record its references${this.#missed(tracked)}`,
			);
		}
	}

	/** Tells which targets a shadow records as missing, and why that may be. */
	#missed({ text, references }: TrackedResource): string {
		const { resources } = this.records;
		for (const held of references) {
			const target = resources.get(held.text);
			if (target?.uid === held.uid && this.#recorded(text, held)?.targetUid === "") {
				const isDeleting = this.#isBeingDeleted(target) ? ", being deleted" : "";
				const isLeaving = this.records.isInMarkedNamespace(target) ? ", in a marked namespace" : "";
				return `: ${held.text}, which exists${isDeleting}${isLeaving}, is recorded as missing`;
			}
		}
		return "";
	}

	#checkHeld(
		referrer: TrackedResource,
		held: TrackedReference,
		target: TrackedResource | undefined,
		shadow: Shadow | undefined,
	): void {
		const { text, deployment } = referrer;
		const { path, text: to, uid, isSuspended } = held;
		if (uid === unresolved || isSuspended) {
			return;
		}
		if (target?.uid !== uid) {
			this.violation(1, `${text} references ${to} with ${path}, which does not exist`);
		} else if (!this.#losses.isNamed(referrer, held, this.#recorded(text, held), shadow)) {
			const where = deployment.info.name;
			this.violation(2, `${text} references ${to}, whose shadow does not name ${where}`);
		}
	}
}

interface Committed {
	readonly deployment: SimulatedDeployment;
	readonly version: string;
	readonly id: ID;
	readonly stored: Resource | undefined;
}

/** Whether a resource has a reference to this incarnation already. */
function holds({ references }: TrackedResource, { text, uid }: TrackedResource): boolean {
	return references.some((held) => held.text === text && held.uid === uid);
}

/** Each write of a user has a unique note. If the note is unchanged, no user wrote the resource. */
function noteOf({ deployment, resource }: TrackedResource): string {
	const { service } = deployment;
	const version = resource.id?.type?.groupVersion;
	const type = service.versions.both.types.find((each) => each.type.groupVersion === version);
	return noteIn(decodeShared(type ?? service.type, resource).data);
}

function noteIn(data: object): string {
	return "note" in data && typeof data.note === "string" ? data.note : "";
}
