import {
	createFileRegistry,
	createRegistry,
	type DescMessage,
	type FileRegistry,
	fromBinary,
	type Registry,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { ID, Scope } from "@plinth/proto";
import type { TypeService } from "@plinth/proto/gen/plinth/type/v1/type_service_pb.js";
import { gvkKey, hasNamespace, hasPartition, idOf, type TypeLike } from "@plinth/resource";
import { quoted } from "./shortened.ts";
import { nearest } from "./suggest.ts";
import { UnknownTypeError } from "./unknown-type-error.ts";

/** A type as the server describes it. */
export interface KnownType {
	readonly type: TypeLike;
	/** A name such as `catalog.v1.Workload`. */
	readonly key: string;
	readonly scope: Scope;
	readonly schema: DescMessage;
}

/** The types that a server listed. */
export class KnownTypes {
	readonly all: readonly KnownType[];
	/** All messages of the types. */
	readonly messages: Registry;
	/** By names such as `catalog.v1.Workload`. */
	readonly byKey: ReadonlyMap<string, KnownType>;

	constructor(all: readonly KnownType[], messages: Registry) {
		this.all = all;
		this.messages = messages;
		this.byKey = new Map(all.map((type) => [type.key, type]));
	}

	/** The type with exactly that name, or `undefined`. */
	get(type: TypeLike): KnownType | undefined {
		return this.byKey.get(gvkKey(type));
	}

	/**
	 * Finds a type by `catalog.v1.Workload`, `catalog.Workload` or `Workload`, in any case and also in the
	 * plural.
	 *
	 * @throws UnknownTypeError if no type matches, or more than one.
	 */
	find(word: string): KnownType {
		const exact = this.byKey.get(word);
		if (exact !== undefined) {
			return exact;
		}
		const requested = word.toLowerCase();
		const found = this.all.filter((type) => namesOf(type).includes(requested));
		const [only, ...others] = found;
		if (only === undefined) {
			throw new UnknownTypeError(`unknown type ${shown(word)}${this.#hint(word)}`);
		}
		if (others.length > 0) {
			const keys = found.map(({ key }) => key).join(", ");
			throw new UnknownTypeError(`${word} is ambiguous, use the full name: ${keys}`);
		}
		return only;
	}

	#hint(word: string): string {
		if (this.all.length === 0) {
			return ": the server has no types that the caller may use";
		}
		const near =
			nearest(
				word,
				this.all.map(({ key }) => key),
			) ??
			nearest(
				word,
				this.all.map(({ type }) => type.kind),
			);
		return near === undefined
			? ": `plinth types` lists those of the server that you may use; to add one, start the server with its module (plinth-server --module)"
			: `; did you mean ${near}?`;
	}
}

/** Quoted, unless it looks like the name of a type. */
function shown(word: string): string {
	return /^[\w.-]{1,60}$/.test(word) ? word : quoted(word);
}

function namesOf({ type, key }: KnownType): readonly string[] {
	const kind = type.kind.toLowerCase();
	const plurals = [`${kind}s`, `${kind}es`, kind.replace(/y$/, "ies")];
	return [key.toLowerCase(), `${type.group}.${kind}`, kind, ...plurals];
}

/** Loads all types of a server. */
export async function loadTypes(
	client: Client<typeof TypeService>,
	signal?: AbortSignal,
): Promise<KnownTypes> {
	const types: KnownType[] = [];
	const registries: FileRegistry[] = [];
	let pageToken = "";
	do {
		const page = await client.listTypes({ pageToken }, signal && { signal });
		const registry = createFileRegistry(
			fromBinary(FileDescriptorSetSchema, page.fileDescriptorSet),
		);
		registries.push(registry);
		for (const { type, scope, messageName } of page.types) {
			const schema = registry.getMessage(messageName);
			if (type !== undefined && schema !== undefined) {
				types.push({ type, key: gvkKey(type), scope, schema });
			}
		}
		pageToken = page.nextPageToken;
	} while (pageToken !== "");
	return new KnownTypes(types, createRegistry(...registries));
}

/** The tenancy in which commands look for resources. */
export interface Place {
	readonly partition: string;
	readonly namespace: string;
}

/** The ID of a resource of the type, in the units of the place that the scope of the type includes. */
export function idAt(type: KnownType, name: string, place: Place): ID {
	return idOf(type, name, place);
}

/** The tenancy for a list of the type. */
export function tenancyAt({ scope }: KnownType, place: Place, everywhere: boolean): Place {
	return {
		partition: !hasPartition(scope) ? "" : everywhere ? "*" : place.partition,
		namespace: !hasNamespace(scope) ? "" : everywhere ? "*" : place.namespace,
	};
}
