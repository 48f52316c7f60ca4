/** The number of a child process. Each child has another one. */
export type ChildId = number;

/** A child process that has imported the module of the project, or still does. */
export interface Child {
	readonly id: ChildId;
	/** The change that it was started for. */
	readonly revision: number;
}

/** The child that may hold the data. */
export interface Holder extends Child {
	readonly phase: "starting" | "serving" | "stopping";
}

/**
 * The state of a supervisor. A child advances from the left to the right:
 *
 * ```
 *              loaded                   the holder has exited
 * candidate ───────────▶ successor ───────────────────────────▶ holder
 * imports the code       waits                                   opens the data, serves, stops
 * ```
 *
 * Invariants:
 *
 * - Only the holder has been told to open the data, and it has not exited: never two children with the data.
 * - The holder is told to stop only when a successor has been loaded, or at the end: code that can't be loaded never
 *   ends the one that serves.
 * - The candidate is of the newest change. An older one is killed: it holds nothing.
 */
export interface Supervision {
	readonly phase: "running" | "ending" | "ended";
	/** The number of the newest change. */
	readonly revision: number;
	/** The number of children started so far. */
	readonly started: number;
	/** Whether code is being generated; `again` if protos have changed since it began. */
	readonly generation: "idle" | "running" | "again";
	readonly candidate?: Child | undefined;
	readonly successor?: Child | undefined;
	readonly holder?: Holder | undefined;
	/** Children that were killed or have failed, and have not exited yet. */
	readonly leaving: ReadonlySet<ChildId>;
}

/** What happens to a supervisor. */
export type SupervisionEvent =
	/** Files have changed. The first one starts everything. */
	| { readonly kind: "changed"; readonly generate: boolean }
	| { readonly kind: "generated"; readonly ok: boolean }
	/** The child has imported the module, and found it valid. */
	| { readonly kind: "loaded"; readonly id: ChildId }
	/** The child could not import the module or start the server. It exits by itself. */
	| { readonly kind: "failed"; readonly id: ChildId }
	| { readonly kind: "ready"; readonly id: ChildId }
	| { readonly kind: "exited"; readonly id: ChildId }
	/** The child has not stopped in time. */
	| { readonly kind: "stop-timed-out"; readonly id: ChildId }
	/** The user ends everything; a second time, immediately. */
	| { readonly kind: "end"; readonly force: boolean };

/** What a supervisor does, in this order. */
export type SupervisionEffect =
	| { readonly kind: "generate" }
	| { readonly kind: "cancel-generation" }
	| { readonly kind: "spawn"; readonly id: ChildId }
	| { readonly kind: "kill"; readonly id: ChildId }
	/** The child stops gracefully, within a time limit. */
	| { readonly kind: "stop"; readonly id: ChildId }
	/** The child opens the data and serves. */
	| { readonly kind: "serve"; readonly id: ChildId }
	/** Connections go to this child from now on, also those that wait. */
	| { readonly kind: "forward"; readonly id: ChildId }
	/** Connections wait from now on. */
	| { readonly kind: "hold" }
	| { readonly kind: "report"; readonly event: SupervisionReport }
	/** Everything has ended. */
	| { readonly kind: "ended" };

/** What the user is told. Failures of children tell the rest themselves. */
export type SupervisionReport =
	| { readonly kind: "ready" }
	/** The code could not be generated or loaded. */
	| { readonly kind: "not-loaded"; readonly isServing: boolean }
	/** A child that was not told to exit has exited. */
	| { readonly kind: "crashed"; readonly phase: "loading" | "starting" | "serving" }
	| { readonly kind: "killed" };

/** A state and what to do. */
export type Transition = readonly [Supervision, readonly SupervisionEffect[]];

/** The state before anything has happened. */
export const initialSupervision: Supervision = {
	phase: "running",
	revision: 0,
	started: 0,
	generation: "idle",
	leaving: new Set(),
};

/** What follows from an event. Events of children that have left are ignored. */
export function supervise(state: Supervision, event: SupervisionEvent): Transition {
	switch (event.kind) {
		case "changed":
			return onChanged(state, event.generate);
		case "generated":
			return onGenerated(state, event.ok);
		case "loaded":
			return onLoaded(state, event.id);
		case "failed":
			return onFailed(state, event.id);
		case "ready":
			return onReady(state, event.id);
		case "exited":
			return onExited(state, event.id);
		case "stop-timed-out":
			return state.holder?.id === event.id && state.holder.phase === "stopping"
				? [state, [{ kind: "kill", id: event.id }, report({ kind: "killed" })]]
				: [state, []];
		case "end":
			return onEnd(state, event.force);
	}
}

function onChanged(state: Supervision, generate: boolean): Transition {
	if (state.phase !== "running") {
		return [state, []];
	}
	const [current, killed] = withoutCandidate({ ...state, revision: state.revision + 1 });
	if (state.generation !== "idle") {
		return [{ ...current, generation: generate ? "again" : state.generation }, killed];
	}
	if (generate) {
		return [{ ...current, generation: "running" }, [...killed, { kind: "generate" }]];
	}
	const [next, effects] = withCandidate(current);
	return [next, [...killed, ...effects]];
}

function onGenerated(state: Supervision, ok: boolean): Transition {
	if (state.phase !== "running") {
		return ended({ ...state, generation: "idle" }, []);
	}
	if (state.generation === "again") {
		return [{ ...state, generation: "running" }, [{ kind: "generate" }]];
	}
	const idle: Supervision = { ...state, generation: "idle" };
	return ok ? withCandidate(idle) : [idle, [notLoaded(idle)]];
}

function onLoaded(state: Supervision, id: ChildId): Transition {
	const { candidate, successor, holder } = state;
	if (candidate?.id !== id) {
		return [state, []];
	}
	const next = { ...state, candidate: undefined };
	if (holder === undefined) {
		return serveWith(next, candidate);
	}
	const [replaced, killed] =
		successor === undefined ? [next, []] : leave({ ...next, successor: undefined }, successor.id);
	const [stopping, effects] = stopHolder(replaced, holder);
	return [{ ...stopping, successor: candidate }, [...killed, ...effects]];
}

function onFailed(state: Supervision, id: ChildId): Transition {
	if (state.candidate?.id === id) {
		const next = { ...state, candidate: undefined, leaving: added(state.leaving, id) };
		return [next, [notLoaded(next)]];
	}
	return [state, []];
}

function onReady(state: Supervision, id: ChildId): Transition {
	const { holder } = state;
	if (holder?.id !== id || holder.phase !== "starting") {
		return [state, []];
	}
	return [
		{ ...state, holder: { ...holder, phase: "serving" } },
		[{ kind: "forward", id }, report({ kind: "ready" })],
	];
}

function onExited(state: Supervision, id: ChildId): Transition {
	const { candidate, successor, holder } = state;
	const crashed = (phase: "loading" | "starting" | "serving") => report({ kind: "crashed", phase });
	if (candidate?.id === id) {
		return [{ ...state, candidate: undefined }, [crashed("loading")]];
	}
	if (successor?.id === id) {
		return [{ ...state, successor: undefined }, [crashed("loading")]];
	}
	if (holder?.id !== id) {
		return ended({ ...state, leaving: removed(state.leaving, id) }, []);
	}
	const effects: SupervisionEffect[] = [];
	if (holder.phase === "serving") {
		effects.push({ kind: "hold" });
	}
	if (holder.phase !== "stopping") {
		effects.push(crashed(holder.phase));
	}
	const without = { ...state, holder: undefined };
	if (successor === undefined) {
		return ended(without, effects);
	}
	const [next, more] = serveWith({ ...without, successor: undefined }, successor);
	return [next, [...effects, ...more]];
}

function onEnd(state: Supervision, force: boolean): Transition {
	if (state.phase === "ended") {
		return [state, []];
	}
	const { successor, holder } = state;
	const [first, killedCandidate] = withoutCandidate({ ...state, phase: "ending" });
	const [second, killedSuccessor] =
		successor === undefined ? [first, []] : leave({ ...first, successor: undefined }, successor.id);
	const [third, stopped] = holder === undefined ? [second, []] : stopHolder(second, holder);
	const effects: SupervisionEffect[] = [...killedCandidate, ...killedSuccessor, ...stopped];
	if (state.phase === "running" && state.generation !== "idle") {
		effects.push({ kind: "cancel-generation" });
	}
	if (force) {
		const all = [...third.leaving, ...(holder === undefined ? [] : [holder.id])];
		effects.push(...all.map((id) => ({ kind: "kill", id }) as const));
	}
	return ended(third, effects);
}

/** Tells a child to open the data. There must be no holder. */
function serveWith(state: Supervision, { id, revision }: Child): Transition {
	return [{ ...state, holder: { id, revision, phase: "starting" } }, [{ kind: "serve", id }]];
}

function stopHolder(state: Supervision, holder: Holder): Transition {
	if (holder.phase === "stopping") {
		return [state, []];
	}
	const hold: readonly SupervisionEffect[] = holder.phase === "serving" ? [{ kind: "hold" }] : [];
	return [
		{ ...state, holder: { ...holder, phase: "stopping" } },
		[...hold, { kind: "stop", id: holder.id }],
	];
}

function withCandidate(state: Supervision): Transition {
	const id = state.started + 1;
	return [
		{ ...state, started: id, candidate: { id, revision: state.revision } },
		[{ kind: "spawn", id }],
	];
}

function withoutCandidate(state: Supervision): Transition {
	return state.candidate === undefined
		? [state, []]
		: leave({ ...state, candidate: undefined }, state.candidate.id);
}

/** Kills a child that holds nothing. */
function leave(state: Supervision, id: ChildId): Transition {
	return [{ ...state, leaving: added(state.leaving, id) }, [{ kind: "kill", id }]];
}

/** The end, if nothing is left of what was running. */
function ended(state: Supervision, effects: readonly SupervisionEffect[]): Transition {
	const isLast =
		state.phase === "ending" &&
		state.holder === undefined &&
		state.leaving.size === 0 &&
		state.generation === "idle";
	return isLast
		? [{ ...state, phase: "ended" }, [...effects, { kind: "ended" }]]
		: [state, effects];
}

function notLoaded({ holder }: Supervision): SupervisionEffect {
	return report({ kind: "not-loaded", isServing: holder?.phase === "serving" });
}

function report(event: SupervisionReport): SupervisionEffect {
	return { kind: "report", event };
}

function added(ids: ReadonlySet<ChildId>, id: ChildId): ReadonlySet<ChildId> {
	return new Set([...ids, id]);
}

function removed(ids: ReadonlySet<ChildId>, id: ChildId): ReadonlySet<ChildId> {
	return new Set([...ids].filter((each) => each !== id));
}
