/** What waits for a batch. */
interface Waiting<Question, Answer> {
	readonly question: Question;
	readonly resolve: (answer: Answer) => void;
	readonly reject: (reason: unknown) => void;
}

/**
 * Calls that carry many questions: one call at a time, and whatever is asked meanwhile goes with
 * the next one.
 */
export class Batcher<Question, Answer> {
	readonly #call: (questions: readonly Question[]) => Promise<readonly Answer[]>;
	readonly #size: number;
	#waiting: Waiting<Question, Answer>[] = [];
	#calling = false;

	/** @param size - how many questions a call carries at most. */
	constructor(call: (questions: readonly Question[]) => Promise<readonly Answer[]>, size: number) {
		this.#call = call;
		this.#size = size;
	}

	/** The answer to one question; rejects as the call does that carries it. */
	ask(question: Question): Promise<Answer> {
		return new Promise((resolve, reject) => {
			this.#waiting.push({ question, resolve, reject });
			if (!this.#calling) {
				this.#calling = true;
				void this.#work();
			}
		});
	}

	async #work(): Promise<void> {
		while (this.#waiting.length > 0) {
			const batch = this.#waiting.slice(0, this.#size);
			this.#waiting = this.#waiting.slice(this.#size);
			try {
				const answers = await this.#call(batch.map(({ question }) => question));
				for (const [i, { resolve, reject }] of batch.entries()) {
					const answer = answers[i];
					if (answer === undefined) {
						reject(new Error("the deployment answered fewer questions than it was asked"));
					} else {
						resolve(answer);
					}
				}
			} catch (failure) {
				for (const { reject } of batch) {
					reject(failure);
				}
			}
		}
		this.#calling = false;
	}
}
