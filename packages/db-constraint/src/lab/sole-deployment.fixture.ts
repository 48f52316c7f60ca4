import { create, type DescMessage } from "@bufbuild/protobuf";
import type { Resource } from "@plinth/proto";
import {
	addFinalizer,
	decodeShared,
	finalizersOf,
	idOf,
	isMarkedForDeletion,
	newUlid,
	type ResourceType,
	referenceTo,
	removeFinalizer,
	resourceOf,
	tenancyOf,
} from "@plinth/resource";
import { deletionWithTombstone } from "@plinth/resource-service";
import { LocalLeases, type Runtime, SuspendableLeases } from "@plinth/runtime";
import { type StorageBackend, wildcard } from "@plinth/storage";
import { deletion } from "../commit/removals.ts";
import type { ConstraintLimits } from "../node/limits.ts";
import { openReferences, type References } from "../node/open-references.ts";
import { isDeletionIrrevocable } from "../protocol/holder-decision.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { ResourceShadow, shadowOf } from "../shadow/shadow-records.ts";
import { collectFailures } from "./collected-failures.fixture.ts";
import { withLocalFences } from "./local-fences.fixture.ts";
import { type ModelReference, NaiveModel } from "./naive-model.fixture.ts";
import { controllerClients } from "./own-client.fixture.ts";
import type { DrawnSchema } from "./random-schema.fixture.ts";

/** The finalizer of users. */
const held = "user/holds";

/** Options of a `SoleDeployment`. */
export interface SoleOptions {
	readonly backend: StorageBackend;
	readonly runtime: Runtime;
	readonly schema: DrawnSchema;
	readonly types: readonly ResourceType<DescMessage>[];
	readonly limits?: Partial<ConstraintLimits>;
}

/** A deployment of a generated schema, with its handlers. Resources have names such as `T0/a`. */
export class SoleDeployment {
	readonly failures: unknown[] = [];
	readonly #options: SoleOptions;
	#references: References | undefined;

	constructor(options: SoleOptions) {
		this.#options = options;
	}

	/** Starts as a server does. */
	async start(): Promise<void> {
		const { backend, runtime, types, limits = {} } = this.#options;
		const local = new LocalLeases();
		const leases = new SuspendableLeases(local);
		const references = await openReferences({
			...{ runtime, leases, limits },
			backend: withLocalFences(backend, local),
			descriptor: new ServiceDescriptor({ types }),
			onFailure: (failure) => this.failures.push(failure),
			logger: collectFailures(this.failures),
		});
		this.#references = references;
		await references.discover(new AbortController().signal);
		references.control({ ...controllerClients(references.store, types, runtime), leases });
	}

	/** Stops the deployment. */
	async stop(): Promise<void> {
		await this.#references?.close();
	}

	get #store(): StorageBackend {
		if (this.#references === undefined) {
			throw new Error("the deployment has not been started");
		}
		return this.#references.store;
	}

	/** Creates or replaces a resource. */
	async write(key: string, references: readonly ModelReference[], isHeld: boolean): Promise<void> {
		const { runtime, backend } = this.#options;
		const type = this.#typeOf(key);
		const id = this.#id(key);
		const stored = await backend.lookup(id);
		if (stored !== undefined && isMarkedForDeletion(stored)) {
			throw new Error(`${key} is being deleted`);
		}
		const init: Record<string, unknown> = {};
		for (const { field, target } of references) {
			const reference = referenceTo({ type: this.#typeOf(target).type, name: nameOf(target) });
			const isList = this.#fieldOf(key, field)?.isList;
			init[field] = isList ? [...listOf(init[field]), reference] : reference;
		}
		const resource: Resource = {
			...resourceOf(type, { id, data: create(type.schema, init) }),
			metadata: { ...stored?.metadata },
			generation: newUlid(runtime),
		};
		resource.id = { ...id, uid: stored?.id?.uid ?? newUlid(runtime) };
		if (stored === undefined && isHeld) {
			addFinalizer(resource, held);
		}
		await this.#store.commit([{ op: "put", resource, expectedVersion: stored?.version ?? "" }]);
	}

	/** Deletes a resource, or marks it. */
	async delete(key: string): Promise<void> {
		const { runtime, backend } = this.#options;
		const stored = await backend.lookup(this.#id(key));
		const mutations = stored === undefined ? [] : deletion(runtime, stored);
		if (mutations.length > 0) {
			await this.#store.commit(mutations);
		}
	}

	/** Removes the user's finalizer from a resource that is being deleted. */
	async release(key: string): Promise<void> {
		const { runtime, backend } = this.#options;
		const stored = await backend.lookup(this.#id(key));
		if (!stored || !isMarkedForDeletion(stored) || !finalizersOf(stored).includes(held)) {
			return;
		}
		const next = { ...stored, metadata: { ...stored.metadata }, generation: newUlid(runtime) };
		removeFinalizer(next, held);
		await this.#store.commit(
			finalizersOf(next).length === 0
				? deletionWithTombstone(runtime, stored)
				: [{ op: "put", resource: next, expectedVersion: stored.version }],
		);
	}

	/** The stored state, described like that of the model. */
	async describe(): Promise<readonly string[]> {
		return (await this.model()).describe();
	}

	/** A model of the stored state. */
	async model(): Promise<NaiveModel> {
		const model = new NaiveModel();
		for (const [at, type] of this.#options.types.entries()) {
			for (const resource of await this.#list(type)) {
				model.resources.set(`T${at}/${resource.id?.name}`, {
					references: this.#referencesOf(at, resource),
					isHeld: finalizersOf(resource).includes(held),
					isMarked: isMarkedForDeletion(resource),
				});
			}
		}
		return model;
	}

	/** References to missing targets, of resources that are not past recall. */
	async dangling(): Promise<readonly string[]> {
		const all = new Set((await this.describe()).map((line) => line.split(" ")[0]));
		const problems: string[] = [];
		for (const [at, type] of this.#options.types.entries()) {
			for (const resource of await this.#list(type)) {
				for (const { field, target } of this.#referencesOf(at, resource)) {
					if (!all.has(target) && !isDeletionIrrevocable(resource)) {
						problems.push(`T${at}/${resource.id?.name}.${field} -> ${target}`);
					}
				}
			}
		}
		return problems;
	}

	/** Shadows without a resource. */
	async orphans(): Promise<readonly string[]> {
		const query = {
			type: ResourceShadow.type,
			tenancy: { partition: "", namespace: "" },
			namePrefix: "s-",
		};
		const { resources } = await this.#options.backend.list(query);
		const all = new Set((await this.describe()).map((line) => line.split(" ")[0]));
		return resources.flatMap((resource) => {
			const key = shadowOf(resource)?.shadow.resource;
			const name = `${key?.kind}/${key?.name}`;
			return all.has(name) ? [] : [name];
		});
	}

	async #list(type: ResourceType<DescMessage>): Promise<readonly Resource[]> {
		const query = {
			type: type.type,
			tenancy: { partition: wildcard, namespace: wildcard },
			namePrefix: "",
		};
		return (await this.#options.backend.list(query)).resources;
	}

	#referencesOf(at: number, resource: Resource): readonly ModelReference[] {
		const type = this.#options.types[at];
		const fields = this.#options.schema[at] ?? [];
		if (type === undefined) {
			return [];
		}
		const data = new Map(Object.entries(decodeShared(type, resource).data));
		return fields.flatMap(({ target, rule }, index) => {
			const value = data.get(`f${index}`);
			const values = Array.isArray(value) ? value : value === undefined ? [] : [value];
			return values.map((each) => {
				const name = String(Object(each).name);
				return { field: `f${index}`, target: `T${target}/${name}`, rule };
			});
		});
	}

	#typeOf(key: string): ResourceType<DescMessage> {
		const type = this.#options.types[Number(key.slice(1, key.indexOf("/")))];
		if (type === undefined) {
			throw new Error(`${key} has an unknown type`);
		}
		return type;
	}

	#fieldOf(key: string, field: string) {
		return this.#options.schema[Number(key.slice(1, key.indexOf("/")))]?.[Number(field.slice(1))];
	}

	#id(key: string) {
		const tenancy = tenancyOf({ partition: "default", namespace: "default" });
		return { ...idOf(this.#typeOf(key), nameOf(key)), tenancy };
	}
}

function listOf(value: unknown): readonly unknown[] {
	return Array.isArray(value) ? value : [];
}

function nameOf(key: string): string {
	return key.slice(key.indexOf("/") + 1);
}
