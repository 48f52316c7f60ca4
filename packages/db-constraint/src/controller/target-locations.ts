import type { ConstraintContext } from "../node/constraint-context.ts";
import type { StoredShadow } from "../shadow/shadow-records.ts";

/** A service in a region, which stores targets. */
function locationOf(service: string, region: string): string {
	return `${service}@${region}`;
}

/** The services and regions that store the targets of this deployment's references, maintained as shadows change. */
export class TargetLocations {
	readonly #context: Pick<ConstraintContext, "descriptor" | "environment" | "index">;
	readonly #byShadow = new Map<string, ReadonlySet<string>>();
	readonly #counts = new Map<string, number>();
	readonly #onChange: () => void;

	/** @param onChange - called when a location becomes referenced, or is no longer referenced. */
	constructor(
		context: Pick<ConstraintContext, "descriptor" | "environment" | "index">,
		onChange: () => void,
	) {
		this.#context = context;
		this.#onChange = onChange;
	}

	/** Whether any reference has its target there. */
	has(service: string, region: string): boolean {
		return this.#counts.has(locationOf(service, region));
	}

	/** Follows the shadows until the returned function is called. */
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
		const locations = shadow.outgoing.flatMap(({ target }) => {
			const service = target && descriptor.serviceOfGroup(target.group);
			return target === undefined || service === undefined
				? []
				: [locationOf(service || self.service, target.region)];
		});
		const foreign = locations.filter(
			(location) => location !== locationOf(self.service, self.region),
		);
		return foreign.length === 0 ? none : new Set(foreign);
	}

	#set(name: string, locations: ReadonlySet<string>): void {
		const before = this.#byShadow.get(name) ?? none;
		if (before.size === 0 && locations.size === 0) {
			return;
		}
		let changed = false;
		for (const location of locations) {
			if (!before.has(location)) {
				const count = this.#counts.get(location) ?? 0;
				this.#counts.set(location, count + 1);
				changed ||= count === 0;
			}
		}
		for (const location of before) {
			if (!locations.has(location)) {
				const left = (this.#counts.get(location) ?? 1) - 1;
				if (left === 0) {
					this.#counts.delete(location);
					changed = true;
				} else {
					this.#counts.set(location, left);
				}
			}
		}
		if (locations.size === 0) {
			this.#byShadow.delete(name);
		} else {
			this.#byShadow.set(name, locations);
		}
		if (changed) {
			this.#onChange();
		}
	}
}

const none: ReadonlySet<string> = new Set();
