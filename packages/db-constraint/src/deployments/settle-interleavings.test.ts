import { decorateBackend, type Mutation, type StorageBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Widget } from "../../testdata/types.ts";
import { thing, to, widget } from "../lab/things.fixture.ts";
import { deriveReferences } from "../schema/derive-references.ts";
import { shadowName } from "../shadow/shadow.ts";
import { ResourceShadow, recordOf } from "../shadow/shadow-records.ts";
import { compareVersions } from "../shadow/versions.ts";
import { Action, operatorsOf, restore, startBoth } from "./settling.fixture.ts";

interface Committed {
	readonly version: string;
	readonly mutations: readonly Mutation[];
}

/** A storage that records its commits, and of which a test interrupts one access. */
class InterruptedStorage {
	readonly commits: Committed[] = [];
	/** How many accesses are left before the interruption. */
	#left = 0;
	#interrupt: (() => Promise<void>) | undefined;

	/** Whether the interruption has happened. */
	get isOver(): boolean {
		return this.#interrupt === undefined;
	}

	interruptAt(access: number, interrupt: () => Promise<void>): void {
		this.#left = access;
		this.#interrupt = interrupt;
	}

	decorate(backend: StorageBackend): StorageBackend {
		return decorateBackend(backend, {
			lookup: async (...args) => {
				await this.#access();
				return backend.lookup(...args);
			},
			commit: async (mutations, options) => {
				await this.#access();
				const result = await backend.commit(mutations, options);
				if (!options?.dryRun) {
					this.commits.push({ version: result.version, mutations });
				}
				return result;
			},
		});
	}

	async #access(): Promise<void> {
		this.#left -= 1;
		const interrupt = this.#interrupt;
		if (this.#left === 0 && interrupt !== undefined) {
			this.#interrupt = undefined;
			await interrupt();
		}
	}
}

const isAssertOfShadow = (mutation: Mutation) =>
	mutation.op === "assert" && mutation.id.type?.kind === ResourceShadow.type.kind;

/**
 * Settles the kept reference of a widget. Its target comes back, and the reference is resolved, before one of the accesses
 * of that to the storage.
 *
 * @param asserts - whether what settles asserts the shadow: without that, it is a planted fault.
 * @returns what is wrong: a reference was given up by a commit before which it had a target again.
 */
async function settleWhileItComesBack(access: number, action: Action, asserts: boolean) {
	const storage = new InterruptedStorage();
	const { lab, alpha, beta } = await startBoth({ decorate: (it) => storage.decorate(it) });
	await lab.run(alpha.write(thing("a")));
	await lab.run(beta.write(widget("w", { needs: to("a") })));
	await lab.pass(5_000);
	const restored = await restore(lab, alpha);
	const store = asserts
		? beta.store
		: decorateBackend(beta.store, {
				commit: (mutations, options) =>
					beta.store.commit(
						mutations.filter((each) => !isAssertOfShadow(each)),
						options,
					),
			});
	const operators = operatorsOf(lab, beta, { store });
	const uid = restored.info.uid;
	const missing = await operators.missing(uid);
	// The status of a kept reference does not change when it is resolved: only the shadow does.
	await operators.settle(uid, Action.KEEP, missing);
	const id = beta.id(Widget, "w");
	storage.interruptAt(access, async () => {
		await restored.write(thing("a"));
		await deriveReferences(beta.current.constraints.context, id);
	});
	const settled = await operators.settle(uid, action, missing);
	const problems = problemsIn(storage.commits, shadowName(lab.keyOf(beta, id)));
	return { settled, problems, isOver: storage.isOver };
}

/** The commits that gave up a reference which had a target then. */
function problemsIn(commits: readonly Committed[], shadow: string): readonly string[] {
	const problems: string[] = [];
	let hadTarget = false;
	for (const { version, mutations } of commits.toSorted((x, y) =>
		compareVersions(x.version, y.version),
	)) {
		const puts = mutations.flatMap((each) => (each.op === "put" ? each.resource : []));
		const ids = mutations.flatMap((each) => (each.op === "delete" ? each.id : []));
		const isGone =
			ids.some(({ name, type }) => name === "w" && type?.kind === "Widget") ||
			puts.some((put) => put.id?.type?.kind === "Widget" && put.data?.value.length === 0);
		if (isGone && hadTarget) {
			problems.push(`version ${version} gave up a reference with a target`);
		}
		for (const put of puts.filter(({ id }) => id?.name === shadow)) {
			const { record } = recordOf(put);
			const outgoing = record.case === "shadow" ? record.value.outgoing : [];
			hadTarget = outgoing.some(({ targetUid }) => targetUid !== "");
		}
		hadTarget &&= !isGone;
	}
	return problems;
}

/** The results for each access to the storage at which the target can come back. */
async function atEachAccess(action: Action, asserts: boolean) {
	const all: Awaited<ReturnType<typeof settleWhileItComesBack>>[] = [];
	for (let access = 1; ; access++) {
		const result = await settleWhileItComesBack(access, action, asserts);
		if (!result.isOver) {
			return all;
		}
		all.push(result);
	}
}

describe.each([
	["unset", Action.UNSET],
	["cascaded", Action.CASCADE],
])("a reference that is %s", (_, action) => {
	it("is not given up once its target is back", async () => {
		const all = await atEachAccess(action, true);
		expect(all.flatMap(({ problems }) => problems)).toEqual([]);
		expect(all.length).toBeGreaterThan(5);
		const outcomes = new Set(all.map(({ settled }) => settled.join()));
		expect(outcomes).toContain("GONE");
	});

	it("would be, if what gives it up did not assert the shadow", async () => {
		const all = await atEachAccess(action, false);
		expect(all.flatMap(({ problems }) => problems)).not.toEqual([]);
	});
});
