import type { Resource } from "@plinth/proto";
import {
	type Access,
	type Decision,
	decodeShared,
	operatorRead,
	type TypeRegistry,
} from "@plinth/resource";
import { decideRead } from "./authorization.ts";

/**
 * What one caller may read, for lists and watches. A decision that holds for each name of a type in
 * a tenancy is asked for once per tenancy.
 */
export class Readable {
	readonly #registry: TypeRegistry;
	readonly #access: Access;
	/** By type and tenancy; `undefined` where each name has to be asked for. */
	readonly #everyName = new Map<string, Decision | undefined>();

	constructor(registry: TypeRegistry, access: Access) {
		this.#registry = registry;
		this.#access = access;
	}

	/** Whether the caller may read the resource. One of an unregistered type takes `operator:read`. */
	has(resource: Resource): boolean {
		const id = resource.id;
		if (id?.type === undefined) {
			return false;
		}
		const type = this.#registry.get(id.type);
		if (type?.hooks.authorize?.read !== undefined) {
			const byId = decideRead(type, this.#access, id);
			const decision =
				byId.kind === "needs-resource"
					? decideRead(type, this.#access, id, decodeShared(type, resource))
					: byId;
			return decision.kind === "allowed";
		}
		const decision =
			this.#everyNameDecision(resource) ??
			this.#access.check(operatorRead, { type: id.type, tenancy: id.tenancy, name: id.name });
		return decision.kind === "allowed";
	}

	#everyNameDecision(resource: Resource): Decision | undefined {
		const { type, tenancy } = resource.id ?? {};
		if (this.#access.checkEveryName === undefined || type === undefined) {
			return undefined;
		}
		const key = `${type.group}/${type.groupVersion}/${type.kind}/${tenancy?.partition}/${tenancy?.namespace}`;
		if (!this.#everyName.has(key)) {
			if (this.#everyName.size >= maxCachedTenancies) {
				this.#everyName.clear();
			}
			this.#everyName.set(key, this.#access.checkEveryName(operatorRead, { type, tenancy }));
		}
		return this.#everyName.get(key);
	}
}

/** Beyond it the decisions are asked for anew. */
const maxCachedTenancies = 10_000;
