import type { Clock, Timer } from "@plinth/runtime";
import { type LoadCapacity, type StateStore, StorageUnavailable } from "@plinth/storage";
import type { RevisionGate } from "./revision-gate.ts";

/** The bytes of changes that may be replayed, and for how long, in milliseconds. */
const replayBytes = 64 * 1024 * 1024;
const replayMs = 10_000;

/** The state that was loaded could not be brought up to date. */
export class NotReplayed extends StorageUnavailable {}

/**
 * Watches over a state that was loaded at an earlier revision, until the changes since have made it new enough to be used:
 * it must fit into memory, and have nothing in it that no Plinth server has written, as one that is loaded at once. The
 * changes may be many times as large as the state, so they are limited.
 */
export class ReplayedState {
	readonly #capacity: LoadCapacity;
	readonly #clock: Clock;
	readonly #timeoutMs: number;
	/** When replaying began: loading before that may take as long as it needs. */
	#begunAtMs: number | undefined;
	/** Aborts with the reason why the state can't be used. */
	readonly #unfit = new AbortController();
	#silence: Timer | undefined;
	#bytes = 0;
	#isUsed = false;

	/** @param timeoutMs - how long etcd may send nothing. */
	constructor(capacity: LoadCapacity, clock: Clock, timeoutMs: number) {
		this.#capacity = capacity;
		this.#clock = clock;
		this.#timeoutMs = timeoutMs;
	}

	/** Whether changes are still replayed. */
	get isReplaying(): boolean {
		return !this.#isUsed;
	}

	/** A change was skipped, or the state can't be followed. */
	readonly onSkipped = (failure: unknown): void => {
		if (!this.#isUsed) {
			this.#unfit.abort(failure);
		}
	};

	/** Changes of so many bytes were applied. */
	readonly onApplied = (state: StateStore, bytes: number): void => {
		if (this.#isUsed) {
			return;
		}
		this.#bytes += bytes;
		this.#waitForMore();
		try {
			this.#check(state);
		} catch (failure) {
			this.#unfit.abort(failure);
		}
	};

	/**
	 * Resolves when the state has this version. From then on it is used, and nothing is checked any more.
	 *
	 * @throws StateTooLarge; UnrecognizedData; NotReplayed; the reason of the signals.
	 */
	async reaches(
		version: number,
		gate: RevisionGate,
		signals: readonly AbortSignal[],
	): Promise<void> {
		const signal = AbortSignal.any([...signals, this.#unfit.signal]);
		this.#begunAtMs = this.#clock.monotonic();
		this.#waitForMore();
		try {
			await gate.reached(version, signal);
			// The gate opens in the midst of a response.
			signal.throwIfAborted();
			this.#isUsed = true;
		} finally {
			this.#silence?.cancel();
		}
	}

	/** @throws StateTooLarge; NotReplayed. */
	#check({ bytes, size }: StateStore): void {
		this.#capacity.check({ bytes, size });
		const nowMs = this.#clock.monotonic();
		const tookMs = nowMs - (this.#begunAtMs ?? nowMs);
		if (this.#bytes > replayBytes || tookMs > replayMs) {
			throw new NotReplayed(
				`the changes since the loaded revision take too long to apply: ${this.#bytes} bytes and ${Math.round(tookMs)} ms`,
			);
		}
	}

	#waitForMore(): void {
		this.#silence?.cancel();
		this.#silence = this.#clock.setTimer(this.#timeoutMs, () =>
			this.#unfit.abort(
				new NotReplayed(
					`can't load the storage: etcd has sent no changes since the loaded revision for ${this.#timeoutMs} ms`,
				),
			),
		);
	}
}
