import { Code } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import { decode, deletionTimestampKey, finalizersKey } from "@plinth/resource";
import { Artist } from "../demo.fixture.ts";

/** The state of a stored artist. */
export interface State {
	readonly uid: string;
	readonly version: string;
	readonly generation: string;
	readonly genre: string;
	/** Absent: no entry. Empty: an entry that names none. */
	readonly finalizers: string | undefined;
	/** Its `deletionTimestamp`. */
	readonly mark: string | undefined;
	/** Key and observed generation. */
	readonly status: Readonly<Record<string, string>>;
}

/** A call on one artist. Empty strings stand for absent values. */
export type Call =
	| { readonly kind: "read"; readonly uid: string }
	| {
			readonly kind: "write";
			readonly uid: string;
			readonly version: string;
			readonly genre: string;
			readonly finalizers: string | undefined;
			readonly mark: string | undefined;
	  }
	| {
			readonly kind: "write-status";
			readonly uid: string;
			readonly version: string;
			readonly key: string;
			readonly observedGeneration: string;
	  }
	| { readonly kind: "delete"; readonly uid: string; readonly version: string }
	/** The artist in a list of that version. */
	| { readonly kind: "listed"; readonly version: string };

/** The outcome of a call. */
export type Outcome =
	| { readonly kind: "resource"; readonly state: State }
	/** The artist is not in the list. */
	| { readonly kind: "not-listed" }
	/** Of a deletion: the version of the commit; empty if there was nothing to do. */
	| { readonly kind: "done"; readonly version: string }
	| { readonly kind: "refused"; readonly code: Code; readonly message: string };

/** The effect that a call must have on an artist in some state, by the rules of the resource API. */
export type Effect =
	/** Nothing changes, and this is the outcome. */
	| { readonly kind: "none"; readonly outcome: Outcome }
	/** The artist is stored with this state. The service chooses the fields that are absent. */
	| { readonly kind: "stored"; readonly state: NewState; readonly freshGeneration: boolean }
	/** The artist is deleted; `last` is what a write returns. */
	| { readonly kind: "removed"; readonly last: NewState };

/** A state without what the service chooses; `mark: "any"` is a time. */
export type NewState = Omit<State, "uid" | "version" | "generation">;

/** The rules, as a simple model. */
export function effectOf(call: Call, stored: State | undefined): Effect {
	switch (call.kind) {
		case "read":
			return stored === undefined || isOther(call.uid, stored)
				? refused(Code.NotFound, "resource not found")
				: { kind: "none", outcome: { kind: "resource", state: stored } };
		case "listed":
			return {
				kind: "none",
				outcome:
					stored === undefined ? { kind: "not-listed" } : { kind: "resource", state: stored },
			};
		case "write-status":
			if (stored === undefined || isOther(call.uid, stored)) {
				return refused(Code.NotFound, "resource not found");
			}
			if (call.version !== "" && call.version !== stored.version) {
				return staleVersion;
			}
			return {
				kind: "stored",
				state: { ...stored, status: { ...stored.status, [call.key]: call.observedGeneration } },
				freshGeneration: false,
			};
		case "delete":
			if (stored === undefined || isOther(call.uid, stored)) {
				return nothing;
			}
			if (call.version !== "" && call.version !== stored.version) {
				return staleVersion;
			}
			if (!stored.finalizers) {
				return { kind: "removed", last: stored };
			}
			return stored.mark === undefined
				? { kind: "stored", state: { ...stored, mark: "any" }, freshGeneration: true }
				: nothing;
		case "write":
			return stored === undefined ? effectOfCreation(call) : effectOfUpdate(call, stored);
	}
}

type Write = Extract<Call, { kind: "write" }>;

function effectOfCreation(call: Write): Effect {
	if (call.version !== "") {
		return staleVersion;
	}
	if (call.uid !== "") {
		return uidMismatch;
	}
	if (call.mark !== undefined) {
		return invalid("resource.metadata.deletionTimestamp can't be set on resource creation");
	}
	const { genre, finalizers, mark } = call;
	return { kind: "stored", state: { genre, finalizers, mark, status: {} }, freshGeneration: true };
}

function effectOfUpdate(call: Write, stored: State): Effect {
	if (call.version !== "" && call.version !== stored.version) {
		return staleVersion;
	}
	if (isOther(call.uid, stored)) {
		return uidMismatch;
	}
	const carry = call.version === "";
	const finalizers = call.finalizers ?? (carry ? stored.finalizers : undefined);
	const mark = call.mark ?? (carry ? stored.mark : undefined);
	const { genre } = call;
	const next: NewState = { genre, finalizers, mark, status: stored.status };
	const refusal =
		stored.mark !== undefined
			? refusalOfMarked(next, stored)
			: mark !== undefined
				? refusalOfMarking(next, stored)
				: undefined;
	if (refusal !== undefined) {
		return refusal;
	}
	return mark !== undefined && !finalizers
		? { kind: "removed", last: next }
		: { kind: "stored", state: next, freshGeneration: true };
}

function refusalOfMarking(next: NewState, stored: State): Effect | undefined {
	if (next.finalizers !== stored.finalizers) {
		return invalid("a write that marks a resource for deletion can't change its metadata");
	}
	return next.genre === stored.genre
		? undefined
		: invalid("a write that marks a resource for deletion can't change its data");
}

function refusalOfMarked(next: NewState, stored: State): Effect | undefined {
	if (next.mark === undefined) {
		return invalid(
			"the resource is marked for deletion, so a write can't remove its deletionTimestamp",
		);
	}
	if (next.mark !== stored.mark) {
		return invalid(
			"the resource is marked for deletion, so a write can't change its deletionTimestamp",
		);
	}
	if (next.finalizers === stored.finalizers && next.genre === stored.genre) {
		return invalid(
			"the resource is marked for deletion, so a write can't leave it as it is: only finalizers can be removed",
		);
	}
	if (next.genre !== stored.genre) {
		return invalid("the resource is marked for deletion, so a write can't change its data");
	}
	const before = namesOf(stored.finalizers);
	const left = namesOf(next.finalizers);
	return left.length < before.length && left.every((name) => before.includes(name))
		? undefined
		: invalid(
				"the resource is marked for deletion, so a write can't do anything but remove finalizers",
			);
}

function namesOf(finalizers: string | undefined): readonly string[] {
	return finalizers ? finalizers.split(" ") : [];
}

function isOther(uid: string, stored: State): boolean {
	return uid !== "" && uid !== stored.uid;
}

const nothing: Effect = { kind: "none", outcome: { kind: "done", version: "" } };

function refused(code: Code, message: string): Effect {
	return { kind: "none", outcome: { kind: "refused", code, message } };
}

function invalid(message: string): Effect {
	return refused(Code.InvalidArgument, message);
}

const staleVersion = refused(
	Code.Aborted,
	"CAS operation failed because the given version doesn't match what is stored",
);

const uidMismatch = refused(
	Code.FailedPrecondition,
	"write failed because the given uid doesn't match what is stored",
);

/** The state of an artist in a response or an event. */
export function stateOf(resource: Resource | undefined): State {
	if (resource?.id === undefined) {
		throw new Error("expected a resource");
	}
	return {
		uid: resource.id.uid,
		version: resource.version,
		generation: resource.generation,
		genre: decode(Artist, resource).data.genre,
		finalizers: resource.metadata[finalizersKey],
		mark: resource.metadata[deletionTimestampKey],
		status: Object.fromEntries(
			Object.entries(resource.status).map(([key, status]) => [key, status.observedGeneration]),
		),
	};
}
