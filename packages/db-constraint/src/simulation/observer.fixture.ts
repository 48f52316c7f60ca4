import type { ID, Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import {
	Lifecycle,
	type OutgoingReference,
	type Shadow,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { decodeShared, finalizersOf, isMarkedForDeletion, Namespace } from "@plinth/resource";
import type { Commit, Mutation } from "@plinth/storage";
import { keyOfShadow } from "../commit-plan.ts";
import { isPastRecall } from "../holder-decision.ts";
import { locateReferences } from "../locate-references.ts";
import { keyOf, keyString } from "../resource-key.ts";
import { referencesFinalizer, sourceOf } from "../shadow.ts";
import { ResourceShadow, recordOf, shadowOf } from "../shadow-records.ts";
import { explainDeletion, Requests, unexplainedChange } from "./explanations.fixture.ts";
import type { SimulatedDeployment } from "./participants.fixture.ts";
import {
	Records,
	type TrackedReference,
	type TrackedResource,
	unresolved,
} from "./records.fixture.ts";
import type { SimulatedSchema } from "./schemas.fixture.ts";
import type { Trace } from "./trace.fixture.ts";
import { describeResource, describeShadow } from "./trace-format.fixture.ts";

/** A promise that was broken, by its number in docs/references.md. */
export interface Violation {
	readonly promise: 1 | 2 | 3 | 4;
	readonly message: string;
}

/** One resource before and after a commit. */
interface Change {
	readonly text: string;
	readonly before: TrackedResource | undefined;
	readonly after: TrackedResource | undefined;
}

/**
 * Sees every commit of every deployment, in the order in which they land, and holds each against the
 * promises. It knows nothing of what servers think: only what is stored, and what users asked for.
 */
export class Observer {
	readonly records = new Records();
	readonly requests = new Requests();
	readonly violations: Violation[] = [];
	readonly #trace: Trace;
	/** Which resource a shadow is of, by deployment and name of the record. */
	readonly #shadowed = new Map<string, string>();

	constructor(trace: Trace) {
		this.#trace = trace;
	}

	/** A handler has failed: only faults of the simulation may make it. */
	failed(name: string, failure: unknown): void {
		this.#trace.add(name, () => `fails: ${failure}`);
		if (failure instanceof TypeError || failure instanceof RangeError) {
			this.violation(3, `${name}: ${failure.stack}`);
		}
	}

	/** A promise was broken. */
	violation(promise: Violation["promise"], message: string): void {
		this.violations.push({ promise, message });
		this.#trace.add("observer", () => `PROMISE ${promise} IS BROKEN: ${message}`);
	}

	/** A commit has landed. */
	onCommit(
		deployment: SimulatedDeployment,
		mutations: readonly Mutation[],
		{ version, resources }: Commit,
	): void {
		const changes: Change[] = [];
		const touched = new Set<string>();
		for (const [at, mutation] of mutations.entries()) {
			const stored = resources[at];
			const id = stored?.id ?? (mutation.op === "delete" ? mutation.id : undefined);
			if (id?.type === undefined || mutation.op === "assert") {
				continue;
			}
			const landed = { deployment, version, id, stored };
			if (id.type.kind === ResourceShadow.type.kind) {
				touched.add(this.#shadow(landed));
				for (const text of this.#schema(landed)) {
					touched.add(text);
				}
			} else if (id.type.kind === Namespace.type.kind) {
				this.#namespace(landed);
			} else if (id.type.group === deployment.service.type.type.group) {
				changes.push(this.#resource(landed));
			}
		}
		for (const change of changes) {
			touched.add(change.text);
			this.#check(this.#resolved(change));
		}
		for (const text of touched) {
			this.#follow(text);
		}
		for (const text of touched) {
			this.#checkTarget(text);
			const tracked = this.records.resources.get(text);
			if (tracked !== undefined && !isPastRecall(tracked.resource)) {
				this.#checkReferences(tracked);
			}
		}
	}

	#shadow({ deployment, version, id, stored }: Landed): string {
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
		if (shadow === undefined) {
			this.records.shadows.delete(known);
		} else {
			this.records.shadows.set(known, shadow);
		}
		this.#trace.add(
			deployment.info.name,
			() => `@${version} shadow of ${known}: ${describeShadow(shadow)}`,
		);
		if (
			before?.lifecycle === Lifecycle.DELETING &&
			shadow?.uid === before.uid &&
			shadow.lifecycle !== Lifecycle.DELETING
		) {
			this.violation(4, `DELETING of ${known} was taken back`);
		}
		return known;
	}

	/** The record of the schema changes: answers what must be derived by it now. */
	#schema({ deployment, id, stored }: Landed): readonly string[] {
		const record = stored && recordOf(stored).record;
		if (record?.case !== "descriptor") {
			return [];
		}
		const { fingerprint, complete } = record.value;
		const schema = deployment.service.schemas.find(
			({ descriptor }) => descriptor.fingerprint === fingerprint,
		);
		if (schema === undefined) {
			this.violation(4, `${deployment.info.name} has a schema in ${id.name} that nobody gave it`);
			return [];
		}
		const before = this.records.inForce.get(deployment);
		const hasChanged = before !== undefined && (before.hasChanged || before.schema !== schema);
		this.records.inForce.set(deployment, { schema, complete, hasChanged });
		const what = complete ? "is complete" : "comes into force";
		this.#trace.add(deployment.info.name, () => `schema "${schema.name}" ${what}`);
		return complete
			? [...this.records.resources.values()]
					.filter((each) => each.deployment === deployment)
					.map(({ text }) => text)
			: [];
	}

	#inForce(deployment: SimulatedDeployment): SimulatedSchema {
		return this.records.inForce.get(deployment)?.schema ?? deployment.service.schemas[0];
	}

	/**
	 * A resource goes over to the schema in force when its shadow does, and when all must have; a reference
	 * that had no target gets one when the shadow names it.
	 */
	#follow(text: string): void {
		const before = this.records.resources.get(text);
		if (before === undefined) {
			return;
		}
		const isComplete = this.records.inForce.get(before.deployment)?.complete ?? false;
		const derived = derivedBy(before, this.#inForce(before.deployment));
		const isDerived = isComplete || this.#isSaid(derived);
		if (before.schema !== derived.schema && isDerived) {
			this.#resolved({ text, before, after: derived });
		} else if (before.references.some(({ uid }) => uid === unresolved)) {
			this.#resolved({ text, before, after: before });
		}
	}

	/** Whether the shadow has those references, whatever they are to. */
	#isSaid({ text, references }: TrackedResource): boolean {
		const outgoing = this.records.shadows.get(text)?.outgoing ?? [];
		return (
			outgoing.length === references.length &&
			references.every((held) => outgoing.some((each) => isOf(each, held)))
		);
	}

	#namespace({ deployment, version, id, stored }: Landed): void {
		const unit = `${deployment.info.name}/${id.name}`;
		if (stored !== undefined && isMarkedForDeletion(stored)) {
			this.records.markedNamespaces.add(unit);
		} else {
			this.records.markedNamespaces.delete(unit);
		}
		const what = () => `@${version} namespace ${id.name}: ${describeResource(stored)}`;
		this.#trace.add(deployment.info.name, what);
	}

	#resource({ deployment, version, id, stored }: Landed): Change {
		const text = keyString(keyOf(id, deployment.info.region));
		const before = this.records.resources.get(text);
		this.#trace.add(deployment.info.name, () => `@${version} ${text}: ${describeResource(stored)}`);
		if (stored === undefined) {
			this.records.remove(text);
			return { text, before, after: undefined };
		}
		const isSame = before !== undefined && before.resource.data === stored.data;
		const schema = isSame ? before.schema : this.#inForce(deployment);
		const references = isSame
			? before.references
			: referencesOf(deployment, schema, stored, before);
		const uid = stored.id?.uid ?? "";
		const after = { deployment, text, uid, resource: stored, schema, references };
		this.records.store(after);
		return { text, before, after };
	}

	/** New references are to what is there when they are committed, with all of their commit. */
	#resolved(change: Change): Change {
		const { text, before, after } = change;
		if (after === undefined || after.references.every(isResolved)) {
			if (after !== undefined && after !== this.records.resources.get(text)) {
				this.records.store(after);
			}
			return change;
		}
		// What no user writes is derived by a schema, and may find nothing.
		const isDerived = before !== undefined && noteOf(before) === noteOf(after);
		const outgoing = this.records.shadows.get(text)?.outgoing ?? [];
		const references = after.references.map((held): TrackedReference => {
			if (isResolved(held)) {
				return held;
			}
			const said = outgoing.find((each) => isOf(each, held))?.targetUid;
			if (held.uid === unresolved ? !said : said === "" && isDerived) {
				return { ...held, uid: unresolved };
			}
			const target = this.records.resources.get(held.text);
			if (target === undefined) {
				this.violation(
					1,
					`${text} was stored with ${held.path} to ${held.text}, which is not there`,
				);
			} else if (this.#isGoing(target)) {
				this.violation(4, `${text} was stored with ${held.path} to ${held.text}, which is going`);
			}
			return { ...held, uid: target?.uid ?? "missing" };
		});
		const resolved = { ...after, references };
		this.records.store(resolved);
		return { text, before, after: resolved };
	}

	#isGoing({ text, uid, resource }: TrackedResource): boolean {
		return isMarkedForDeletion(resource) || this.records.isDeleting(text, uid);
	}

	/** Promise 4. */
	#check({ text, before, after }: Change): void {
		if (before === undefined) {
			return;
		}
		const { records, requests } = this;
		const marked = after === undefined || isMarkedForDeletion(after.resource);
		if (marked && !isMarkedForDeletion(before.resource)) {
			const why = explainDeletion(records, requests, before);
			if (why === undefined) {
				this.violation(4, `${text} is deleted without reason`);
			}
			for (const [referrer, { path, rule, uid }] of records.referencing(text)) {
				const blocks = rule === OnDelete.BLOCK && !records.isInMarkedNamespace(referrer);
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
			const problem = unexplainedChange(records, requests, derivedBy(before, after.schema), after);
			if (problem !== undefined) {
				this.violation(4, `${text}: ${problem}`);
			}
		}
	}

	/** Promises 1 and 2, of all that reference it. */
	#checkTarget(text: string): void {
		const target = this.records.resources.get(text);
		const shadow = this.records.shadows.get(text);
		for (const [referrer, held] of this.records.referencing(text)) {
			this.#checkHeld(referrer, held, target, shadow);
		}
	}

	/** Promises 1 and 2, of all that it references; and its shadow says what that is. */
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
					({ target, targetUid, rule }) =>
						target !== undefined &&
						(targetUid || unresolved) === held.uid &&
						rule === held.rule &&
						keyString(target) === held.text,
				),
			);
		if (!isSame) {
			this.violation(2, `the shadow of ${text} does not say what it references`);
		}
	}

	#checkHeld(
		{ text, deployment }: TrackedResource,
		{ path, text: to, uid }: TrackedReference,
		target: TrackedResource | undefined,
		shadow: Shadow | undefined,
	): void {
		if (uid === unresolved) {
			return;
		}
		if (target?.uid !== uid) {
			this.violation(1, `${text} references ${to} with ${path}, and that is gone`);
		} else if (shadow === undefined || sourceOf(shadow, deployment.info.uid) === undefined) {
			const where = deployment.info.name;
			this.violation(2, `${text} references ${to}, whose shadow does not name ${where}`);
		}
	}
}

interface Landed {
	readonly deployment: SimulatedDeployment;
	readonly version: string;
	readonly id: ID;
	readonly stored: Resource | undefined;
}

/** Those that it had before keep their incarnations; new ones are resolved later. */
function referencesOf(
	{ environment }: SimulatedDeployment,
	{ descriptor }: SimulatedSchema,
	stored: Resource,
	before: TrackedResource | undefined,
): readonly TrackedReference[] {
	return locateReferences({ descriptor, environment }, stored).map(({ path, target, rule }) => {
		const text = keyString(target);
		const known = before?.references.find((held) => held.text === text && held.rule === rule);
		return known ?? { path, target, text, rule, uid: "" };
	});
}

/** The same resource with the references that it has by a schema, each to what it was to before. */
function derivedBy(tracked: TrackedResource, schema: SimulatedSchema): TrackedResource {
	if (tracked.schema === schema) {
		return tracked;
	}
	const { deployment, resource, references: before } = tracked;
	const references = referencesOf(deployment, schema, resource, tracked).map((held) => {
		const { uid = "" } = before.find(({ text }) => text === held.text) ?? {};
		return held.uid === "" ? { ...held, uid } : held;
	});
	return { ...tracked, schema, references };
}

function isResolved({ uid }: TrackedReference): boolean {
	return uid !== "" && uid !== unresolved;
}

function isOf({ target, rule }: OutgoingReference, held: TrackedReference): boolean {
	return target !== undefined && rule === held.rule && keyString(target) === held.text;
}

/** Users sign what they write with a note of its own; what has the note of before, no user wrote. */
function noteOf({ deployment, resource }: TrackedResource): string {
	const { type } = deployment.service;
	return noteIn(decodeShared(type, resource).data);
}

function noteIn(data: object): string {
	return "note" in data && typeof data.note === "string" ? data.note : "";
}
