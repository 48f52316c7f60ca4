/*
 * Searches for an order of calls that explains their responses, after Wing and Gong (1993), with the cache of
 * dead ends by Lowe (2017).
 *
 * Calls and returns are in a list by time. Calls before the first return are candidates for the next step:
 *
 *   head ⇄ call a ⇄ call b ⇄ return a ⇄ call c ⇄ return b ⇄ return c
 *          └── candidates ─┘
 *
 * A candidate whose response matches the model is removed from the list with its return, and the search
 * continues with the state after it. If the first return is reached, no candidate fits: the last one is
 * put back, and the next one is tried. A set of calls that failed with a state is not tried with that state
 * again.
 *
 * A call of unknown outcome has no return: it may take effect at any time after its call, or never.
 */

/** A call, on the clock of those who call. */
export interface Timed<Call> {
	readonly call: Call;
	readonly startMs: number;
	/** Absent if its outcome is unknown. */
	readonly endMs?: number;
}

/** What calls do to a state. States are compared as values: a string, say. */
export interface Model<Call, State extends string | number> {
	readonly initial: State;
	/**
	 * The state after the call, or `undefined` if the call could not have this response.
	 * For a call of unknown outcome, the state after its execution.
	 */
	step(state: State, call: Call): State | undefined;
}

/** The result of the search. */
export type Finding<Call> =
	| { readonly kind: "linearizable" }
	/** The first call that the longest attempt could not order. */
	| { readonly kind: "violation"; readonly stuckAt: Timed<Call> };

/** Steps after which the search gives up: histories are meant to be short. */
const mostSteps = 20_000_000;

interface Link<Call> {
	next: Node<Call> | undefined;
}

interface Node<Call> extends Link<Call> {
	readonly timed: Timed<Call>;
	readonly bit: bigint;
	readonly isCall: boolean;
	previous: Link<Call>;
	/** Of a call: its return, if there is one. */
	end: Node<Call> | undefined;
}

/**
 * Searches for an order.
 *
 * @throws RangeError if the history is too tangled to decide.
 */
export function findOrder<Call, State extends string | number>(
	history: readonly Timed<Call>[],
	model: Model<Call, State>,
): Finding<Call> {
	const head = listOf(history);
	const tried = new Set<string>();
	const taken: { readonly node: Node<Call>; readonly before: State }[] = [];
	let state = model.initial;
	let done = 0n;
	let returns = history.filter(({ endMs }) => endMs !== undefined).length;
	let stuck: { readonly depth: number; readonly node: Node<Call> } | undefined;
	let node = head.next;
	for (let steps = 0; returns > 0; steps += 1) {
		if (node === undefined) {
			throw new TypeError("a return stands behind every call that it waits for");
		}
		if (steps > mostSteps) {
			throw new RangeError(`${history.length} calls are too tangled to be decided`);
		}
		if (node.isCall) {
			const after = model.step(state, node.timed.call);
			if (after !== undefined && isNew(tried, done | node.bit, after)) {
				taken.push({ node, before: state });
				done |= node.bit;
				returns -= node.end === undefined ? 0 : 1;
				state = after;
				lift(node);
				node = head.next;
			} else {
				node = node.next;
			}
			continue;
		}
		if (stuck === undefined || taken.length > stuck.depth) {
			stuck = { depth: taken.length, node };
		}
		const last = taken.pop();
		if (last === undefined) {
			return { kind: "violation", stuckAt: stuck.node.timed };
		}
		done ^= last.node.bit;
		returns += last.node.end === undefined ? 0 : 1;
		state = last.before;
		putBack(last.node);
		node = last.node.next;
	}
	return { kind: "linearizable" };
}

function isNew(tried: Set<string>, done: bigint, state: string | number): boolean {
	const size = tried.size;
	return tried.add(`${done.toString(36)} ${state}`).size > size;
}

/** The calls and returns by time; of those at the same time, calls come first. */
function listOf<Call>(history: readonly Timed<Call>[]): Link<Call> {
	const head: Link<Call> = { next: undefined };
	const nodes = history.flatMap((timed, index) => {
		const shared = { timed, bit: 1n << BigInt(index), previous: head, next: undefined };
		const call: Node<Call> = { ...shared, isCall: true, end: undefined };
		if (timed.endMs === undefined) {
			return [{ node: call, atMs: timed.startMs }];
		}
		call.end = { ...shared, isCall: false, end: undefined };
		return [
			{ node: call, atMs: timed.startMs },
			{ node: call.end, atMs: timed.endMs },
		];
	});
	nodes.sort((a, b) => a.atMs - b.atMs || Number(b.node.isCall) - Number(a.node.isCall));
	let last: Link<Call> = head;
	for (const { node } of nodes) {
		last.next = node;
		node.previous = last;
		last = node;
	}
	return head;
}

function lift<Call>(call: Node<Call>): void {
	for (const node of [call, call.end]) {
		if (node === undefined) {
			continue;
		}
		node.previous.next = node.next;
		if (node.next !== undefined) {
			node.next.previous = node.previous;
		}
	}
}

/** The reverse of `lift`, in the reverse order. */
function putBack<Call>(call: Node<Call>): void {
	for (const node of [call.end, call]) {
		if (node === undefined) {
			continue;
		}
		node.previous.next = node;
		if (node.next !== undefined) {
			node.next.previous = node;
		}
	}
}
