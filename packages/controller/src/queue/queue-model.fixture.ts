import { type BackoffPolicy, backoffDelayMs } from "@plinth/runtime";
import type { Priority } from "./queue-entry.ts";

interface ModelKey {
	readonly key: string;
	item: number;
	priority: Priority;
	where: "ready" | "delayed" | "active" | "held";
	/** If ready: its position in the order of all keys that ever became ready. */
	turn: number;
	dueMs: number;
	delayedTurn: number;
	failures: number;
	added: { item: number; priority: Priority; dueMs: number } | undefined;
}

/** A naive model of a merging queue of numbers (the larger is kept), which scans all keys each time. */
export class QueueModel {
	nowMs = 0;
	#keys: ModelKey[] = [];
	#turns = 0;
	#liveRun = 0;
	#backgroundPauses = 0;
	readonly #backoff: BackoffPolicy;

	constructor(backoff: BackoffPolicy) {
		this.#backoff = backoff;
	}

	add(key: string, item: number, priority: Priority, delayMs: number): void {
		const found = this.#keys.find((candidate) => candidate.key === key);
		const dueMs = this.nowMs + delayMs;
		if (found === undefined) {
			const fresh: ModelKey = {
				key,
				item,
				priority,
				where: "ready",
				turn: 0,
				dueMs: 0,
				delayedTurn: 0,
				failures: 0,
				added: undefined,
			};
			this.#keys.push(fresh);
			this.#place(fresh, dueMs);
			return;
		}
		if (found.where === "active") {
			const before = found.added;
			found.added = {
				item: Math.max(item, before?.item ?? item),
				dueMs: Math.min(dueMs, before?.dueMs ?? dueMs),
				priority: priority === "live" || before?.priority === "live" ? "live" : "background",
			};
			return;
		}
		found.item = Math.max(found.item, item);
		if (found.where === "ready" && priority === "live" && delayMs === 0) {
			if (found.priority === "background") {
				found.priority = "live";
				found.turn = this.#turns++;
			}
		}
		if (found.where === "held" && priority === "live") {
			found.priority = "live";
		}
		if (found.where === "delayed") {
			found.priority = priority === "live" ? "live" : found.priority;
			if (dueMs < found.dueMs) {
				this.#place(found, dueMs);
			}
		}
	}

	/** Returns whether it holds the key. */
	gather(key: string, item: number, priority: Priority): boolean {
		const before = this.#keys.find((candidate) => candidate.key === key)?.where;
		if (before !== undefined && before !== "delayed") {
			this.add(key, item, priority, 0);
			return false;
		}
		this.add(key, item, priority, Number.POSITIVE_INFINITY);
		this.hold(key);
		return true;
	}

	pauseBackground(): void {
		this.#backgroundPauses += 1;
	}

	resumeBackground(): void {
		this.#backgroundPauses -= 1;
	}

	get isBackgroundPaused(): boolean {
		return this.#backgroundPauses > 0;
	}

	drop(matches: (key: string) => boolean): void {
		for (const found of this.#keys) {
			if (matches(found.key)) {
				found.added = undefined;
			}
		}
		this.#keys = this.#keys.filter(({ key, where }) => where === "active" || !matches(key));
	}

	get canTake(): boolean {
		return this.#keys.some(
			({ where, priority }) =>
				where === "ready" && (priority === "live" || !this.isBackgroundPaused),
		);
	}

	take(): { key: string; item: number } | undefined {
		const ready = this.#keys.filter((key) => key.where === "ready").sort((a, b) => a.turn - b.turn);
		const live = ready.find((key) => key.priority === "live");
		const background = ready.find((key) => key.priority === "background");
		const useBackground =
			background !== undefined &&
			!this.isBackgroundPaused &&
			(live === undefined || this.#liveRun >= 15);
		const taken = useBackground ? background : live;
		this.#liveRun = useBackground ? 0 : this.#liveRun + 1;
		if (taken === undefined) {
			return undefined;
		}
		taken.where = "active";
		return { key: taken.key, item: taken.item };
	}

	done(key: string, againMs?: number): void {
		const found = this.#find(key);
		found.failures = 0;
		if (againMs !== undefined) {
			found.added = {
				item: found.added?.item ?? found.item,
				dueMs: Math.min(this.nowMs + againMs, found.added?.dueMs ?? Number.POSITIVE_INFINITY),
				priority: found.added?.priority ?? "live",
			};
		}
		if (found.added === undefined) {
			this.#keys = this.#keys.filter((candidate) => candidate !== found);
			return;
		}
		const { item, priority, dueMs } = found.added;
		Object.assign(found, { item, priority, added: undefined });
		this.#place(found, dueMs);
	}

	fail(key: string): void {
		const found = this.#find(key);
		found.failures += 1;
		let dueMs = this.nowMs + backoffDelayMs(this.#backoff, found.failures);
		if (found.added !== undefined) {
			found.item = Math.max(found.item, found.added.item);
			found.priority = found.added.priority === "live" ? "live" : found.priority;
			dueMs = Math.min(dueMs, found.added.dueMs);
			found.added = undefined;
		}
		this.#place(found, dueMs);
	}

	hold(key: string): void {
		this.#find(key).where = "held";
	}

	release(key: string): void {
		const found = this.#keys.find((candidate) => candidate.key === key);
		if (found?.where === "held") {
			found.where = "ready";
			found.turn = this.#turns++;
		}
	}

	advance(byMs: number): void {
		this.nowMs += byMs;
		const due = this.#keys
			.filter((key) => key.where === "delayed" && key.dueMs <= this.nowMs)
			.sort((a, b) => a.dueMs - b.dueMs || a.delayedTurn - b.delayedTurn);
		for (const key of due) {
			this.#place(key, key.dueMs);
		}
	}

	/** The keys that failed when they were processed last, sorted. */
	failing(): readonly string[] {
		return this.#keys
			.filter(({ failures }) => failures > 0)
			.map(({ key }) => key)
			.sort();
	}

	counts(): Record<string, number> {
		const count = (where: ModelKey["where"], priority?: Priority) =>
			this.#keys.filter(
				(key) => key.where === where && (priority === undefined || key.priority === priority),
			).length;
		return {
			live: count("ready", "live"),
			background: count("ready", "background"),
			delayed: count("delayed"),
			active: count("active"),
			held: count("held"),
		};
	}

	nextDueMs(): number | undefined {
		const due = this.#keys.filter((key) => key.where === "delayed").map((key) => key.dueMs);
		return due.length === 0 ? undefined : Math.min(...due);
	}

	#place(key: ModelKey, dueMs: number): void {
		if (dueMs <= this.nowMs) {
			key.where = "ready";
			key.turn = this.#turns++;
		} else {
			key.where = "delayed";
			key.dueMs = dueMs;
			key.delayedTurn = this.#turns++;
		}
	}

	#find(key: string): ModelKey {
		const found = this.#keys.find((candidate) => candidate.key === key);
		if (found === undefined) {
			throw new Error(`no key ${key}`);
		}
		return found;
	}
}
