import type { Resource, Tenancy, Type } from "@plinth/proto";
import {
	type Access,
	type Decision,
	operatorRead,
	type ResourceType,
	type TypeLike,
	type TypeRegistry,
} from "@plinth/resource";
import { mayRead } from "./authorization.ts";

/**
 * Filters lists and watches by what one caller may read. A decision that holds for every name of a type in a
 * tenancy is made once per tenancy.
 */
export class ReadFilter {
	readonly #registry: TypeRegistry;
	readonly #access: Access;
	readonly #places = new Map<string, Place>();
	/** The place of the last resource: the next one is usually in the same place. */
	#last: Place | undefined;

	constructor(registry: TypeRegistry, access: Access) {
		this.#registry = registry;
		this.#access = access;
	}

	/** Whether the caller may read the resource. An unregistered type requires `operator:read`. */
	allows(resource: Resource): boolean {
		const id = resource.id;
		if (id?.type === undefined) {
			return false;
		}
		const { type, everyName } = this.#placeOf(id.type, id.tenancy);
		if (type?.hooks.authorize?.read !== undefined) {
			return mayRead(type, this.#access, resource, id);
		}
		const decision =
			everyName ??
			this.#access.check(operatorRead, { type: id.type, tenancy: id.tenancy, name: id.name });
		return decision.kind === "allowed";
	}

	#placeOf(type: Type, tenancy: Tenancy | undefined): Place {
		const { partition = "", namespace = "" } = tenancy ?? {};
		if (this.#last === undefined || !isAt(this.#last, type, partition, namespace)) {
			this.#last = this.#lookUp(type, partition, namespace);
		}
		return this.#last;
	}

	#lookUp({ group, groupVersion, kind }: Type, partition: string, namespace: string): Place {
		const key = `${group}/${groupVersion}/${kind}/${partition}/${namespace}`;
		let place = this.#places.get(key);
		if (place === undefined) {
			if (this.#places.size >= maxCachedPlaces) {
				this.#places.clear();
			}
			const target = { type: { group, groupVersion, kind }, tenancy: { partition, namespace } };
			place = {
				...target.type,
				...target.tenancy,
				type: this.#registry.get(target.type),
				everyName: this.#access.checkEveryName?.(operatorRead, target),
			};
			this.#places.set(key, place);
		}
		return place;
	}
}

/** A type in a tenancy. */
interface Place extends TypeLike {
	readonly partition: string;
	readonly namespace: string;
	/** Absent if it is not registered. */
	readonly type: ResourceType | undefined;
	/** The decision for every name in this place; `undefined` if each name needs its own. */
	readonly everyName: Decision | undefined;
}

function isAt(place: Place, type: Type, partition: string, namespace: string): boolean {
	return (
		place.partition === partition &&
		place.namespace === namespace &&
		place.kind === type.kind &&
		place.group === type.group &&
		place.groupVersion === type.groupVersion
	);
}

/** When the cache reaches this size, it is cleared. */
const maxCachedPlaces = 10_000;
