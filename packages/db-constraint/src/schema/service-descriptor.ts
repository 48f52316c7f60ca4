import { type DescFile, getOption, hasOption } from "@bufbuild/protobuf";
import type { Resource } from "@plinth/proto";
import { type OnDelete, service } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import {
	type Decoded,
	DecodeError,
	decodeShared,
	defaultTenancyUnit,
	type FamilyLike,
	familyKey,
	gvkKey,
	hasNamespace,
	hasPartition,
	type ResourceType,
	type TypeLike,
} from "@plinth/resource";
import { isPlanted } from "../fault-points.ts";
import { hashOf, type KeyLike } from "../shadow/resource-key.ts";
import { compareApiVersions } from "./api-versions.ts";
import { protocolRevision } from "./protocol-revision.ts";
import { type FoundReference, ReferenceFields, referenceProblems } from "./reference-fields.ts";

/** A service that this one references, in the version that its code knows. */
export interface ImportedService {
	readonly service: string;
	readonly version: string;
	readonly groups: readonly string[];
}

/** A reference of a resource, with its target resolved. */
export interface DeclaredReference {
	readonly path: string;
	/** See `FoundReference`. */
	readonly field: string;
	/** The version of the target's type that the field's option names. */
	readonly groupVersion: string;
	/** With the default partition and namespace filled in; the region is as written. */
	readonly target: KeyLike;
	readonly rule: OnDelete;
	/** The service that stores the target; empty for this service. */
	readonly service: string;
	/** The type that the reference names, if its field may not reference that type. */
	readonly wrongType?: string;
	/** Why the reference can't be cleared; absent if it can. */
	readonly notClearable?: string;
}

/** Options of a `ServiceDescriptor`. */
export interface DescriptorOptions {
	/** All types of this server, including those without references. */
	readonly types: readonly ResourceType[];
	/** Types of imported services that references name. Their scope decides which defaults are filled in. */
	readonly foreignTypes?: readonly ResourceType[];
	/** The deployed service. Default: the one in the options of the files. */
	readonly service?: string;
}

/** Invalid reference options of the types. */
export class DescriptorError extends Error {
	override readonly name = "DescriptorError";
	/** One line each: the type, the field and the reason. */
	readonly problems: readonly string[];

	constructor(problems: readonly string[]) {
		super(problems.join("\n"));
		this.problems = problems;
	}
}

/** The description of a service by its code: its types, their references, and the services it imports. */
export class ServiceDescriptor {
	/** The service's name; empty if no file names one. */
	readonly service: string;
	/** The versions of its API, the oldest first. */
	readonly versions: readonly string[];
	/** The groups of the types that belong to it by an option of their files. */
	readonly groups: readonly string[];
	/** Identifies this schema of references, and the protocol of this code. */
	readonly fingerprint: string;
	readonly #fields = new Map<
		string,
		{ readonly type: ResourceType; readonly fields: ReferenceFields }
	>();
	/** The types with references, by kind: each commit asks, and most kinds have none. */
	readonly #referring = new Map<string, readonly TypeLike[]>();
	readonly #own = new Set<string>();
	readonly #imports = new Map<string, readonly ImportedService[]>();
	readonly #scopes = new Map<string, ResourceType>();

	/**
	 * @throws DescriptorError with all malformed options, and all references to types of groups that are neither
	 *   the service's own nor imported. Error if the types belong to several services.
	 */
	constructor({ types, foreignTypes = [], service: deployed }: DescriptorOptions) {
		const services = new Set<string>();
		const versions = new Set<string>();
		const groups = new Set<string>();
		for (const type of types) {
			this.#own.add(type.type.group);
			const named = serviceOf(type.schema.file);
			if (named !== undefined) {
				services.add(named.service);
				versions.add(named.version);
				groups.add(type.type.group);
				const before = this.#imports.get(named.version) ?? [];
				this.#imports.set(named.version, mergeImports(before, named.imports));
			}
		}
		this.service = deployed ?? [...services][0] ?? "";
		if (deployed === undefined && services.size > 1) {
			throw new Error(
				`the types belong to several services (${[...services].join(", ")}): name the one that is deployed`,
			);
		}
		this.versions = [...versions].sort(compareApiVersions);
		this.groups = [...groups].sort();
		for (const type of [...foreignTypes, ...types]) {
			this.#scopes.set(type.family, type);
		}
		const problems: string[] = [];
		for (const type of types) {
			const malformed = referenceProblems(type.schema);
			const fields = malformed.length === 0 ? new ReferenceFields(type.schema) : undefined;
			const wrong = malformed.length === 0 ? this.#problemsOf(fields) : malformed;
			problems.push(...wrong.map((problem) => `type ${type.key}: ${problem}`));
			if (fields !== undefined) {
				this.#fields.set(type.key, { type, fields });
				if (!fields.isEmpty) {
					const sameKind = this.#referring.get(type.type.kind) ?? [];
					this.#referring.set(type.type.kind, [...sameKind, type.type]);
				}
			}
		}
		if (problems.length > 0) {
			throw new DescriptorError([...new Set(problems)]);
		}
		this.fingerprint = this.#fingerprint(foreignTypes);
	}

	/** The services that a version imports. Without a version: those that any version imports. */
	imports(version?: string): readonly ImportedService[] {
		return version === undefined
			? [...this.#imports.values()].reduce(mergeImports, [])
			: (this.#imports.get(version) ?? []);
	}

	/** The service that owns a group: empty for this service, `undefined` if it is not known. */
	serviceOfGroup(group: string): string | undefined {
		if (this.#own.has(group)) {
			return "";
		}
		return this.imports().find(({ groups }) => groups.includes(group))?.service;
	}

	/**
	 * Whether the references of the resource can be read: its type is registered in the stored group version,
	 * and can decode it.
	 */
	knows(resource: Resource): boolean {
		return this.#of(resource) !== undefined && this.decodeError(resource) === undefined;
	}

	/** Why the references of a resource of a registered type can't be read; `undefined` if they can. */
	decodeError(resource: Resource): DecodeError | undefined {
		const known = this.#of(resource);
		const read = known && !known.fields.isEmpty ? decodeOf(known.type, resource) : undefined;
		return read instanceof DecodeError ? read : undefined;
	}

	/** Whether resources of the type have fields that are references. */
	hasReferences({ id }: Resource): boolean {
		const type = id?.type;
		const sameKind = type && this.#referring.get(type.kind);
		return (
			sameKind?.some(
				({ group, groupVersion }) => group === type?.group && groupVersion === type.groupVersion,
			) ?? false
		);
	}

	/** The references of a resource, in the order of its fields; none if it can't be decoded. */
	referencesOf(resource: Resource): readonly DeclaredReference[] {
		const known = this.#of(resource);
		if (known === undefined || known.fields.isEmpty) {
			return [];
		}
		const read = decodeOf(known.type, resource);
		return read instanceof DecodeError
			? []
			: known.fields.find(read.data).map((found) => this.#declared(found));
	}

	/**
	 * The resource without those references; `undefined` if it has none of them, or can't be decoded.
	 */
	without(
		resource: Resource,
		drops: (reference: DeclaredReference) => boolean,
	):
		| { readonly type: ResourceType; readonly data: ReturnType<ReferenceFields["without"]> }
		| undefined {
		const known = this.#of(resource);
		if (known === undefined) {
			return undefined;
		}
		const read = decodeOf(known.type, resource);
		const changed =
			read instanceof DecodeError
				? undefined
				: known.fields.without(read.data, (found) => drops(this.#declared(found)));
		return changed && { type: known.type, data: changed };
	}

	/** The type of a family, of this service or of an imported one; any of its group versions. */
	typeOf(family: FamilyLike): ResourceType | undefined {
		return this.#scopes.get(familyKey(family));
	}

	/** All types of this service, as in `iam.v1.Project`, in order. */
	get servedTypes(): readonly string[] {
		return [...this.#fields.keys()].sort();
	}

	/**
	 * The types of a service that fields reference, as in `iam.v1.Project`, in order. Those of this service in all
	 * versions that it serves.
	 */
	referencedTypes(service: string): readonly string[] {
		const owner = service === this.service ? "" : service;
		const rules = [...this.#fields.values()]
			.flatMap(({ fields }) => fields.rules.map(({ rule }) => rule))
			.filter(({ group }) => this.serviceOfGroup(group) === owner);
		const families = new Set(owner === "" ? rules.map(familyKey) : []);
		const versions = [...this.#fields.values()].flatMap(({ type }) =>
			families.has(type.family) ? [type.key] : [],
		);
		return [...new Set([...rules.map(gvkKey), ...versions])].sort();
	}

	/** The types of this service that have references. */
	referencingTypes(): readonly ResourceType[] {
		return [...this.#fields.values()]
			.filter(({ fields }) => !fields.isEmpty)
			.map(({ type }) => type);
	}

	#of(resource: Resource) {
		const type = resource.id?.type;
		return type && this.#fields.get(`${type.group}.${type.groupVersion}.${type.kind}`);
	}

	#declared({ path, field, reference, rule }: FoundReference): DeclaredReference {
		const type = this.#scopes.get(familyKey(rule));
		const { partition = "", namespace = "" } = reference.tenancy ?? {};
		const named = reference.type;
		const isWrong = named && familyKey(named) !== "." && familyKey(named) !== familyKey(rule);
		return {
			...{ path, field },
			groupVersion: rule.groupVersion,
			rule: rule.onDelete,
			...(isWrong && { wrongType: gvkKey(named) }),
			...(rule.notClearable !== undefined && { notClearable: rule.notClearable }),
			service: this.serviceOfGroup(rule.group) ?? "",
			target: {
				group: rule.group,
				kind: rule.kind,
				partition: type && !hasPartition(type.scope) ? "" : partition || defaultTenancyUnit,
				namespace: type && !hasNamespace(type.scope) ? "" : namespace || defaultTenancyUnit,
				name: reference.name,
				region: reference.region,
			},
		};
	}

	/** The problems of the types that references name. */
	#problemsOf(fields: ReferenceFields | undefined): readonly string[] {
		return (fields?.rules ?? []).flatMap(({ field, rule }) => {
			const named = `${field}: references ${rule.group}.${rule.groupVersion}.${rule.kind}`;
			const owner = this.serviceOfGroup(rule.group);
			if (owner === undefined) {
				return [
					`${named}, but no type of the group ${rule.group} is registered: register the type, or, if another service has it, name that in the imports of (plinth.schema.v1.service)`,
				];
			}
			return owner === "" && !this.#scopes.has(familyKey(rule))
				? [`${named}, which is not registered`]
				: [];
		});
	}

	#fingerprint(foreignTypes: readonly ResourceType[]): string {
		// A field that only leads to references counts too: a server without it would drop their records.
		const all = [...this.#fields.values()]
			.filter(({ fields }) => !fields.isEmpty)
			.sort((a, b) => (a.type.key < b.type.key ? -1 : 1));
		const structure = all.map(({ type, fields }) => [type.key, fields.structure]);
		const rules = all.flatMap(({ type, fields }) =>
			// Whether a field can be cleared decides nothing that other servers rely on.
			fields.rules.map(({ field, rule: { notClearable: _, ...rule } }) => [type.key, field, rule]),
		);
		const imports = [...this.#imports].sort(([a], [b]) => (a < b ? -1 : 1));
		// The scopes decide whether the name of an owner has a partition and a namespace.
		const scopes = foreignTypes.map(({ type, scope }) => `${familyKey(type)} ${scope}`).sort();
		const fields = isPlanted("tell schemas apart by their rules alone") ? [] : structure;
		const schema = [protocolRevision, this.service, this.versions, imports, rules, fields, scopes];
		return hashOf(JSON.stringify(schema)).slice(0, 32);
	}
}

function decodeOf(type: ResourceType, resource: Resource): Decoded | DecodeError {
	try {
		return decodeShared(type, resource);
	} catch (error) {
		if (error instanceof DecodeError) {
			return error;
		}
		throw error;
	}
}

interface NamedService {
	readonly service: string;
	readonly version: string;
	readonly imports: readonly ImportedService[];
}

function serviceOf(file: DescFile): NamedService | undefined {
	if (!hasOption(file, service)) {
		return undefined;
	}
	const option = getOption(file, service);
	if (!option.service) {
		throw new Error(`${file.proto.name}: (plinth.schema.v1.service).service is required`);
	}
	return {
		service: option.service,
		version: option.version || (file.proto.package.split(".").at(-1) ?? ""),
		imports: option.imports.map(({ service, version, groups }) => ({ service, version, groups })),
	};
}

function mergeImports(
	all: readonly ImportedService[],
	more: readonly ImportedService[],
): readonly ImportedService[] {
	const merged = new Map(all.map((each) => [each.service, each]));
	for (const each of more) {
		const before = merged.get(each.service);
		merged.set(each.service, {
			...each,
			groups: [...new Set([...(before?.groups ?? []), ...each.groups])].sort(),
		});
	}
	return [...merged.values()].sort((a, b) => (a.service < b.service ? -1 : 1));
}
