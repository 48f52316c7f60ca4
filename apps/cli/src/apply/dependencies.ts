import { type DescField, getOption, hasOption, isMessage } from "@bufbuild/protobuf";
import { isReflectMessage, type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import type { KnownType, KnownTypes } from "@plinth/documents";
import type { WantedResource } from "@plinth/documents/yaml";
import { type Reference, ReferenceSchema } from "@plinth/proto";
import { reference } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import {
	type FamilyLike,
	familyKey,
	hasNamespace,
	hasPartition,
	idOf,
	Namespace,
	nameKey,
	Partition,
	type ResourceName,
} from "@plinth/resource";

/**
 * The documents that must be applied before each document, by their positions: those of its partition and namespace,
 * of its owners, of what its data references, and an earlier one of the same resource. They may form cycles.
 */
export function dependenciesOf(
	all: readonly WantedResource[],
	types: KnownTypes,
): readonly ReadonlySet<number>[] {
	const families = new Map(types.all.map((each) => [familyKey(each.type), each]));
	const first = new Map<string, number>();
	const latest = new Map<string, number>();
	for (const [at, { id }] of all.entries()) {
		const key = nameKey(id);
		first.set(key, first.get(key) ?? at);
	}
	return all.map((wanted, at) => {
		const own = nameKey(wanted.id);
		const before = new Set<number>();
		for (const name of namesBefore(wanted, families)) {
			const other = first.get(nameKey(name));
			if (other !== undefined && nameKey(name) !== own) {
				before.add(other);
			}
		}
		const same = latest.get(own);
		if (same !== undefined) {
			before.add(same);
		}
		latest.set(own, at);
		return before;
	});
}

type Families = ReadonlyMap<string, KnownType>;

/** The resources that should exist before that of the document. */
function namesBefore(wanted: WantedResource, families: Families): readonly ResourceName[] {
	const { type, id, owner, ownerReferences = [], data } = wanted;
	const { partition = "", namespace = "" } = id.tenancy ?? {};
	return [
		...(hasPartition(type.scope) ? [idOf(Partition, partition)] : []),
		...(hasNamespace(type.scope) ? [idOf(Namespace, namespace, { partition })] : []),
		...(owner === undefined ? [] : [owner]),
		...ownerReferences.flatMap((each) => nameOf(each, each.type, families)),
		...(data === undefined ? [] : referencesIn(reflect(type.schema, data), families)),
	];
}

/** The resources that a message references, also in its nested messages. */
function referencesIn(message: ReflectMessage, families: Families): readonly ResourceName[] {
	return message.fields.flatMap((field) =>
		message.isSet(field)
			? valuesOf(message, field).flatMap((value) => {
					const inner = value.message;
					return isMessage(inner, ReferenceSchema)
						? nameOf(inner, declaredType(field) ?? inner.type, families)
						: referencesIn(value, families);
				})
			: [],
	);
}

/** The messages in a field. */
function valuesOf(message: ReflectMessage, field: DescField): readonly ReflectMessage[] {
	switch (field.fieldKind) {
		case "message":
			return [message.get(field)];
		case "list":
			return [...message.get(field)].filter((value) => isReflectMessage(value));
		case "map":
			return [...message.get(field).values()].filter((value) => isReflectMessage(value));
		default:
			return [];
	}
}

/** The type of the targets that the field declares; a reference may omit it. */
function declaredType(field: DescField): FamilyLike | undefined {
	if (!hasOption(field, reference)) {
		return undefined;
	}
	const [group = "", , kind = ""] = getOption(field, reference).type.split(".");
	return { group, kind };
}

/** The name of a target, with the default tenancy of its type. None if the server does not list its type. */
function nameOf(
	{ tenancy, name, region }: Pick<Reference, "tenancy" | "name" | "region">,
	family: FamilyLike | undefined,
	families: Families,
): readonly ResourceName[] {
	const type = family && families.get(familyKey(family));
	return type === undefined || region !== "" ? [] : [idOf(type, name, tenancy)];
}
