import type { SimulatedDeployment } from "./participants.fixture.ts";
import type { Records } from "./records.fixture.ts";
import type { SimulatedSchema } from "./schemas.fixture.ts";
import type { TrackedReference, TrackedResource } from "./tracked-resources.fixture.ts";

/** A reference that was written, and the version of the target's type by which it was. */
interface WrittenReference {
	readonly from: SimulatedDeployment;
	readonly to: SimulatedDeployment;
	readonly type: string;
}

/**
 * What is promised about versions: a new reference names a type that its target's deployment serves, and no schema becomes
 * active that drops such a type while the reference exists, unless operators force it. Nothing is promised about what
 * deployments that have lost something drop.
 */
export class ObservedVersions {
	readonly #records: Records;
	/** By the `keyString`s of the resource and of the target. */
	readonly #written = new Map<string, WrittenReference>();

	constructor(records: Records) {
		this.#records = records;
	}

	/** A resource was committed. Returns what is wrong. */
	stored(
		before: TrackedResource | undefined,
		after: TrackedResource | undefined,
	): string | undefined {
		const left = new Set(after?.references.map(({ text }) => text));
		for (const { text } of before?.references ?? []) {
			if (!left.has(text)) {
				this.#written.delete(`${before?.text} ${text}`);
			}
		}
		const known = new Set(before?.references.map(({ text }) => text));
		const problems = after?.references.flatMap((held) =>
			known.has(held.text) ? [] : (this.#add(after, held) ?? []),
		);
		return problems?.[0];
	}

	#add(resource: TrackedResource, { target, text }: TrackedReference): string | undefined {
		const to = this.#records.storageOf(target);
		const active = to && this.#records.activeSchemas.get(to);
		const from = resource.deployment;
		const version = resource.resource.id?.type?.groupVersion ?? "";
		if (to === undefined || active === undefined || to === from) {
			return undefined;
		}
		const type = `${target.group}.${version}.${target.kind}`;
		this.#written.set(`${resource.text} ${text}`, { from, to, type });
		const isServed = active.schema.descriptor.servedTypes.includes(type);
		return isServed || to.wasForced || this.#hasLost(from) || this.#hasLost(to)
			? undefined
			: `${resource.text} was stored with a reference to ${text} by ${type}, which ${to.info.name} does not serve`;
	}

	/** A schema has become active instead of another one. Returns what is wrong. */
	activated(
		to: SimulatedDeployment,
		{ descriptor: before }: SimulatedSchema,
		{ descriptor: after }: SimulatedSchema,
	): string | undefined {
		const dropped = before.servedTypes.filter((type) => !after.servedTypes.includes(type));
		for (const [text, each] of this.#written) {
			const isInUse = each.to === to && dropped.includes(each.type);
			// Deployments of the same service have other versions of their types.
			const isOther = each.from.service !== to.service;
			const isExcused = to.wasForced || this.#hasLost(to) || this.#hasLost(each.from);
			if (isInUse && isOther && !isExcused) {
				return `${to.info.name} drops ${each.type}, which is referenced: ${text}`;
			}
		}
		return undefined;
	}

	#hasLost(deployment: SimulatedDeployment): boolean {
		const { state, former } = this.#records.identityOf(deployment);
		return state !== "settled" || former.size > 0;
	}
}
