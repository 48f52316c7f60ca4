/** An item that waits for the next call. */
interface Pending<Item, Result> {
	readonly item: Item;
	readonly resolve: (result: Result) => void;
	readonly reject: (reason: unknown) => void;
}

/** Merges items into calls: one call at a time; items submitted meanwhile are sent with the next one. */
export class Batcher<Item, Result> {
	readonly #call: (items: readonly Item[]) => Promise<readonly Result[]>;
	readonly #size: number;
	#pending: Pending<Item, Result>[] = [];
	#isCalling = false;

	/** @param size - the maximum number of items per call. */
	constructor(call: (items: readonly Item[]) => Promise<readonly Result[]>, size: number) {
		this.#call = call;
		this.#size = size;
	}

	/** Returns the result for one item. Rejects if the call that carries the item does. */
	submit(item: Item): Promise<Result> {
		return new Promise((resolve, reject) => {
			this.#pending.push({ item, resolve, reject });
			if (!this.#isCalling) {
				this.#isCalling = true;
				void this.#run();
			}
		});
	}

	async #run(): Promise<void> {
		while (this.#pending.length > 0) {
			const batch = this.#pending.slice(0, this.#size);
			this.#pending = this.#pending.slice(this.#size);
			try {
				const results = await this.#call(batch.map(({ item }) => item));
				for (const [i, { resolve, reject }] of batch.entries()) {
					const result = results[i];
					if (result === undefined) {
						reject(
							new Error(
								"the deployment returned fewer results than the number of items sent to it",
							),
						);
					} else {
						resolve(result);
					}
				}
			} catch (failure) {
				for (const { reject } of batch) {
					reject(failure);
				}
			}
		}
		this.#isCalling = false;
	}
}
