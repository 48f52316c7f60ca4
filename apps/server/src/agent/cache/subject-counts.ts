/** The limits of `SubjectCounts`. */
export interface SubjectLimits {
	readonly all: number;
	readonly perSubject: number;
}

/** Counts the calls of a kind that caches serve, of all callers and of each subject. */
export class SubjectCounts {
	readonly #limits: SubjectLimits;
	readonly #bySubject = new Map<string, number>();
	#all = 0;

	constructor(limits: SubjectLimits) {
		this.#limits = limits;
	}

	get all(): number {
		return this.#all;
	}

	/** Counts a call, until the function that is returned is called once; `undefined` if there are too many. */
	enter(subject: string): (() => void) | undefined {
		const own = this.#bySubject.get(subject) ?? 0;
		if (this.#all >= this.#limits.all || own >= this.#limits.perSubject) {
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
