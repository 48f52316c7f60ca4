import { Scope } from "@plinth/proto";
import {
	type Export as ExportMessage,
	ExportSchema,
	type Import as ImportMessage,
	ImportSchema,
	type Peering as PeeringMessage,
	PeeringSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peering_pb.js";
import {
	defaultTenancyUnit,
	defineType,
	familyKey,
	gvkKey,
	labelProblem,
	namePrefixProblem,
	type ResourceType,
	type TypeRegistry,
} from "@plinth/resource";
import { compileMask } from "./export/field-mask.ts";
import { peeringLimits } from "./limits.ts";

/** A relation to a cluster of another owner: `peering.v1.Peering`. */
export const Peering = defineType(PeeringSchema, {
	validate: ({ data }) => checkPeering(data),
});

/** What peers may copy: `peering.v1.Export`, without the checks that depend on the registered types. */
export const Export = defineType(ExportSchema);

/** What is copied from a peer: `peering.v1.Import`. */
export const Import = defineType(ImportSchema, { validate: ({ data }) => checkImport(data) });

/** The types of peerings, to be registered by a server. */
export function peeringTypes(registry: () => Pick<TypeRegistry, "get">): readonly ResourceType[] {
	return [
		Peering,
		defineType(ExportSchema, { validate: ({ data }) => checkExport(data, registry()) }),
		Import,
	];
}

/** Types of the server itself, which are not exported. */
const ownGroups: ReadonlySet<string> = new Set([
	"internal",
	"tenancy",
	"schema",
	"peering",
	"meta",
]);

function checkPeering({ address, ca }: PeeringMessage): void {
	if (address !== "") {
		checkAddress(address, "address");
	}
	checkCa(ca, "ca");
}

/**
 * Checks the address of a cluster.
 *
 * @throws Error that names the field.
 */
export function checkAddress(address: string, path: string): void {
	const url = URL.canParse(address) ? new URL(address) : undefined;
	if (
		url === undefined ||
		!["http:", "https:"].includes(url.protocol) ||
		url.username !== "" ||
		address.length > 512
	) {
		throw new Error(
			`${path} must be a URL such as https://plinth.example.com:7575, of at most 512 characters`,
		);
	}
}

/** Checks certificates. @throws Error that names the field. */
export function checkCa(ca: string, path: string): void {
	if (ca !== "" && !ca.includes("-----BEGIN CERTIFICATE-----")) {
		throw new Error(`${path} must be certificates in PEM`);
	}
	if (ca.length > peeringLimits.caBytes) {
		throw new Error(`${path} is larger than ${peeringLimits.caBytes} bytes`);
	}
}

function checkImport({ peer, export: name, partition }: ImportMessage): void {
	checkLabel(peer, "peer");
	checkLabel(name, "export");
	checkLabel(partition, "partition");
	if (partition === defaultTenancyUnit) {
		throw new Error(
			"partition can't be default: an import creates its partition, and alone writes there",
		);
	}
}

function checkExport(data: ExportMessage, registry: Pick<TypeRegistry, "get">): void {
	const { peers, partition, namespaces, types } = data;
	checkLabel(partition, "partition");
	checkCount(peers, peeringLimits.peers, "peers");
	for (const [at, peer] of peers.entries()) {
		checkLabel(peer, `peers[${at}]`);
	}
	checkCount(namespaces, peeringLimits.namespaces, "namespaces");
	for (const [at, namespace] of namespaces.entries()) {
		checkLabel(namespace, `namespaces[${at}]`);
	}
	checkCount(types, peeringLimits.types, "types");
	const families = new Set<string>();
	for (const [at, { type, namePrefixes, maskedFields }] of types.entries()) {
		const path = `types[${at}]`;
		if (type === undefined) {
			throw new Error(`${path}.type is required`);
		}
		const problem = typeProblem(registry.get(type), gvkKey(type));
		if (problem !== undefined) {
			throw new Error(`${path}.type invalid: ${problem}`);
		}
		if (families.has(familyKey(type))) {
			throw new Error(`${path}.type invalid: ${familyKey(type)} is exported twice`);
		}
		families.add(familyKey(type));
		checkCount(namePrefixes, peeringLimits.namePrefixes, `${path}.name_prefixes`);
		for (const [position, prefix] of namePrefixes.entries()) {
			const wrong = prefix === "" ? "must not be empty" : namePrefixProblem(prefix);
			if (wrong !== undefined) {
				throw new Error(`${path}.name_prefixes[${position}] invalid: ${wrong}`);
			}
		}
		checkCount(maskedFields, peeringLimits.maskedFields, `${path}.masked_fields`);
		const schema = registry.get(type)?.schema;
		if (schema !== undefined) {
			const mask = compileMask(schema, maskedFields);
			if ("problem" in mask) {
				throw new Error(`${path}.masked_fields invalid: ${mask.problem}`);
			}
		}
	}
}

/** Why a type can't be exported; `undefined` if it can. */
export function typeProblem(type: ResourceType | undefined, key: string): string | undefined {
	if (type === undefined) {
		return `resource type ${key} not registered`;
	}
	if (ownGroups.has(type.type.group)) {
		return `${key} is a type of the server`;
	}
	return type.scope === Scope.CLUSTER
		? `${key} is cluster scoped: only what is in a partition can be exported`
		: undefined;
}

function checkLabel(value: string, path: string): void {
	if (value === "") {
		throw new Error(`${path} is required`);
	}
	const problem = labelProblem(value);
	if (problem !== undefined) {
		throw new Error(`${path} invalid: ${problem}, got: ${JSON.stringify(value.slice(0, 100))}`);
	}
}

function checkCount(entries: readonly unknown[], limit: number, path: string): void {
	if (entries.length > limit) {
		throw new Error(`${path} has ${entries.length} entries, more than ${limit}`);
	}
}
