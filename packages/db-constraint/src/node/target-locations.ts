import type { ConstraintContext } from "../constraint-context.ts";
import type { StoredShadow } from "../shadow-records.ts";

/** Where targets are kept: a service in a region. */
function locationOf(service: string, region: string): string {
	return `${service}@${region}`;
}

/** Where the targets of this deployment's references are kept, counted as shadows come and go. */
export class TargetLocations {
	readonly #context: Pick<ConstraintContext, "descriptor" | "environment" | "index">;
	readonly #byShadow = new Map<string, ReadonlySet<string>>();
	readonly #counts = new Map<string, number>();
	readonly #onChange: () => void;

	/** @param onChange - called when a place is referenced for the first time, or no more. */
	constructor(
		context: Pick<ConstraintContext, "descriptor" | "environment" | "index">,
		onChange: () => void,
	) {
		this.#context = context;
		this.#onChange = onChange;
	}

	/** Whether something references what is kept there. */
	has(service: string, region: string): boolean {
		return this.#counts.has(locationOf(service, region));
	}

	/** Follows the shadows, until what is returned is called. */
	follow(): () => void {
		const { index } = this.#context;
		for (const stored of index.all()) {
			this.#set(stored.name, this.#locationsOf(stored));
		}
		return index.onChange((stored, change) => {
			this.#set(stored.name, change === "stored" ? this.#locationsOf(stored) : none);
		});
	}

	#locationsOf({ shadow }: StoredShadow): ReadonlySet<string> {
		const { descriptor, environment } = this.#context;
		const { self } = environment;
		const places = shadow.outgoing.flatMap(({ target }) => {
			const service = target && descriptor.serviceOfGroup(target.group);
			return target === undefined || service === undefined
				? []
				: [locationOf(service || self.service, target.region)];
		});
		const foreign = places.filter((place) => place !== locationOf(self.service, self.region));
		return foreign.length === 0 ? none : new Set(foreign);
	}

	#set(name: string, places: ReadonlySet<string>): void {
		const before = this.#byShadow.get(name) ?? none;
		if (before.size === 0 && places.size === 0) {
			return;
		}
		let changed = false;
		for (const place of places) {
			if (!before.has(place)) {
				const count = this.#counts.get(place) ?? 0;
				this.#counts.set(place, count + 1);
				changed ||= count === 0;
			}
		}
		for (const place of before) {
			if (!places.has(place)) {
				const left = (this.#counts.get(place) ?? 1) - 1;
				if (left === 0) {
					this.#counts.delete(place);
					changed = true;
				} else {
					this.#counts.set(place, left);
				}
			}
		}
		if (places.size === 0) {
			this.#byShadow.delete(name);
		} else {
			this.#byShadow.set(name, places);
		}
		if (changed) {
			this.#onChange();
		}
	}
}

const none: ReadonlySet<string> = new Set();
