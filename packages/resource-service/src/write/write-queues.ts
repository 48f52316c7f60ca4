import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { StorageBackend } from "@plinth/storage";

/** A write that waits until it may run. */
interface Waiter {
	/** Writes begin in this order. */
	readonly ticket: number;
	/** Whether it runs only while no other does. */
	readonly alone: boolean;
	readonly begin: () => void;
}

/** The writes of one resource. */
interface Queue {
	running: number;
	/** Whether the one that runs must stay alone. */
	isReserved: boolean;
	/** How many may run at the same time. */
	width: number;
	/** The number of conflicts so far. */
	conflicts: number;
	/** In the order of their tickets. */
	readonly waiting: Waiter[];
}

/** A write that was admitted, and holds its place until it ends. */
export interface AdmittedWrite {
	/**
	 * Continues after a conflict as soon as no other write of the queue runs, and keeps all others waiting until
	 * this one ends.
	 *
	 * @throws the signal's reason. Then the write has ended.
	 */
	alone(): Promise<void>;
	/** The write has ended. Further calls have no effect. */
	end(outcome: "committed" | "failed"): void;
}

/** As many as a storage commits in one transaction. */
const maxWidth = 1024;
/** The maximum of waiting writes, of all resources together. */
const maxWaiting = 16_384;

/**
 * The order in which read-modify-writes of one resource run: first come, first served.
 *
 * A storage that decides conflicting commits again (`CommitOptions.rebase`) serializes many of them in one
 * transaction, so all may run at first. A conflict shows that it did not do so for these writes. Then they run one
 * by one, and each that commits without a conflict doubles how many may run at the same time:
 *
 * ```
 *   width 1024 ── conflict ──▶ 1 ── committed ──▶ 2 ── committed ──▶ 4 …
 *                              ▲      conflict    │
 *                              └──────────────────┘
 * ```
 *
 * A write that met a conflict keeps its ticket, so it is next, and from then on runs alone. Then it can conflict
 * only with writes that are not queued: those that name a version, those of other servers, and those that
 * decorators of the storage make. So a write conflicts with others in the queue at most once, and only writes that began
 * before this conflict can overtake it.
 *
 * There is no deadlock: a write is in one queue, that of the resource that it writes, whatever else its commit
 * asserts or changes. While it runs it only calls the storage, which never enters a queue, so no write that runs
 * waits for one that is queued.
 */
export class WriteQueues {
	readonly #queues = new Map<string, Queue>();
	#tickets = 0;
	#waiting = 0;

	/**
	 * Waits until a write of the resource of that key may run: not at all if it may run now. It must end.
	 *
	 * @param call - its signal ends the waiting. A write that need not wait does not ask for it, because it is made then.
	 * @throws the signal's reason; ConnectError ResourceExhausted if too many writes wait.
	 */
	enter(key: string, call: Pick<HandlerContext, "signal">): AdmittedWrite | Promise<AdmittedWrite> {
		const queue = this.#queueOf(key);
		this.#tickets += 1;
		const ticket = this.#tickets;
		if (queue.waiting.length === 0 && !queue.isReserved && queue.running < queue.width) {
			queue.running += 1;
			return new Admitted(this, queue, { key, ticket, call });
		}
		if (this.#waiting >= maxWaiting) {
			throw new ConnectError(
				`${maxWaiting} writes are already waiting for earlier writes of the same resources, which is the limit: try again later`,
				Code.ResourceExhausted,
			);
		}
		const place = { key, ticket, call };
		return this.wait(queue, place, false).then(() => new Admitted(this, queue, place));
	}

	/** The number of resources with writes that run or wait. */
	get resources(): number {
		return this.#queues.size;
	}

	#queueOf(key: string): Queue {
		const known = this.#queues.get(key);
		if (known !== undefined) {
			return known;
		}
		const queue = { running: 0, isReserved: false, width: maxWidth, conflicts: 0, waiting: [] };
		this.#queues.set(key, queue);
		return queue;
	}

	/** For writes that were admitted. */
	wait(queue: Queue, { key, ticket, call }: Place, alone: boolean): Promise<void> {
		const { signal } = call;
		return new Promise((resolve, reject) => {
			const settle = () => {
				this.#waiting -= 1;
				signal.removeEventListener("abort", abort);
			};
			const waiter: Waiter = {
				ticket,
				alone,
				begin: () => {
					settle();
					resolve();
				},
			};
			const abort = () => {
				settle();
				queue.waiting.splice(queue.waiting.indexOf(waiter), 1);
				this.admit(key, queue);
				reject(signal.reason);
			};
			// From the end: all but writes that met a conflict have the newest ticket.
			const before = queue.waiting.findLastIndex((other) => other.ticket < ticket);
			queue.waiting.splice(before + 1, 0, waiter);
			this.#waiting += 1;
			signal.addEventListener("abort", abort, { once: true });
			if (signal.aborted) {
				abort();
			}
		});
	}

	/** For writes that were admitted. Lets those run that may, and forgets a queue without writes. */
	admit(key: string, queue: Queue): void {
		for (let [next] = queue.waiting; next !== undefined; [next] = queue.waiting) {
			if (queue.isReserved || queue.running >= (next.alone ? 1 : queue.width)) {
				return;
			}
			queue.waiting.shift();
			queue.running += 1;
			queue.isReserved = next.alone;
			next.begin();
		}
		if (queue.running === 0) {
			this.#queues.delete(key);
		}
	}
}

/** The place of a write in a queue. */
interface Place {
	readonly key: string;
	readonly ticket: number;
	readonly call: Pick<HandlerContext, "signal">;
}

class Admitted implements AdmittedWrite {
	readonly #queues: WriteQueues;
	readonly #queue: Queue;
	readonly #place: Place;
	readonly #conflictsBefore: number;
	#isRunning = true;

	constructor(queues: WriteQueues, queue: Queue, place: Place) {
		this.#queues = queues;
		this.#queue = queue;
		this.#place = place;
		this.#conflictsBefore = queue.conflicts;
	}

	async alone(): Promise<void> {
		this.#leave();
		this.#queue.width = 1;
		this.#queue.conflicts += 1;
		const waited = this.#queues.wait(this.#queue, this.#place, true);
		this.#queues.admit(this.#place.key, this.#queue);
		await waited;
		this.#isRunning = true;
	}

	end(outcome: "committed" | "failed"): void {
		if (!this.#isRunning) {
			return;
		}
		if (outcome === "committed" && this.#queue.conflicts === this.#conflictsBefore) {
			this.#queue.width = Math.min(maxWidth, this.#queue.width * 2);
		}
		this.#leave();
		this.#queues.admit(this.#place.key, this.#queue);
	}

	#leave(): void {
		this.#isRunning = false;
		this.#queue.running -= 1;
		this.#queue.isReserved = false;
	}
}

const queuesByBackend = new WeakMap<StorageBackend, WriteQueues>();

/** The queues of all services over one storage. */
export function writeQueuesOf(backend: StorageBackend): WriteQueues {
	const known = queuesByBackend.get(backend);
	if (known !== undefined) {
		return known;
	}
	const queues = new WriteQueues();
	queuesByBackend.set(backend, queues);
	return queues;
}
