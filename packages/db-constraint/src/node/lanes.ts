/**
 * How much may be under way for one deployment at once. A task that concerns several takes a place in
 * each. One that finds no place is parked, and holds nothing: it is named to `onRoom` when there is one.
 */
export class Lanes {
	readonly #limit: number;
	readonly #onRoom: (task: string) => void;
	readonly #taken = new Map<string, number>();
	readonly #parked = new Map<string, Set<string>>();

	/** @param limit - how many places each lane has. */
	constructor(limit: number, onRoom: (task: string) => void) {
		this.#limit = limit;
		this.#onRoom = onRoom;
	}

	/** Takes a place in each lane, to be given back with what is returned; or parks the task. */
	enter(task: string, lanes: ReadonlySet<string>): (() => void) | undefined {
		for (const lane of lanes) {
			if ((this.#taken.get(lane) ?? 0) >= this.#limit) {
				const parked = this.#parked.get(lane) ?? new Set();
				this.#parked.set(lane, parked.add(task));
				return undefined;
			}
		}
		for (const lane of lanes) {
			this.#taken.set(lane, (this.#taken.get(lane) ?? 0) + 1);
		}
		return () => {
			for (const lane of lanes) {
				this.#leave(lane);
			}
		};
	}

	/** How many places of a lane are taken. */
	taken(lane: string): number {
		return this.#taken.get(lane) ?? 0;
	}

	#leave(lane: string): void {
		const left = (this.#taken.get(lane) ?? 1) - 1;
		if (left === 0) {
			this.#taken.delete(lane);
		} else {
			this.#taken.set(lane, left);
		}
		const parked = this.#parked.get(lane);
		for (const task of parked ?? []) {
			parked?.delete(task);
			if (parked?.size === 0) {
				this.#parked.delete(lane);
			}
			this.#onRoom(task);
			return;
		}
	}
}
