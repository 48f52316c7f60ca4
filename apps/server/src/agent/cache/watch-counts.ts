/** The limits of `WatchCounts`. */
export interface WatchCountLimits {
	readonly watches: number;
	readonly watchesPerSubject: number;
}

/** Counts the watches that caches serve, of all callers and of each subject. */
export class WatchCounts {
	readonly #limits: WatchCountLimits;
	readonly #bySubject = new Map<string, number>();
	#all = 0;

	constructor(limits: WatchCountLimits) {
		this.#limits = limits;
	}

	get all(): number {
		return this.#all;
	}

	/** Counts a watch, until the function that is returned is called once; `undefined` if there are too many. */
	enter(subject: string): (() => void) | undefined {
		const { watches, watchesPerSubject } = this.#limits;
		const own = this.#bySubject.get(subject) ?? 0;
		if (this.#all >= watches || own >= watchesPerSubject) {
			return undefined;
		}
		this.#all += 1;
		this.#bySubject.set(subject, own + 1);
		return () => {
			this.#all -= 1;
			const left = (this.#bySubject.get(subject) ?? 1) - 1;
			if (left === 0) {
				this.#bySubject.delete(subject);
			} else {
				this.#bySubject.set(subject, left);
			}
		};
	}
}
