import { create, type DescFile, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { ListTypesResponseSchema, type TypeService } from "@plinth/proto";
import {
	type Access,
	type Authorizer,
	denialOf,
	operatorWrite,
	type ResourceType,
	type TypeRegistry,
	typeOf,
} from "@plinth/resource";
import { authenticateCall } from "./access/authenticate-call.ts";
import { decideList } from "./access/authorization.ts";
import { malformed } from "./errors/refusal.ts";
import { resourceServiceLimits } from "./requests/limits.ts";
import { filesOf } from "./validation/rules-registry.ts";

const defaultPageSize = 100;

/** The maximum size of the descriptors of a page: less than gRPC clients accept by default. */
const maxPageBytes = 2 * 1024 * 1024;

/** The options of a type service. */
export interface TypeServiceOptions {
	/** Types may be registered until the first call. */
	readonly registry: TypeRegistry;
	readonly authorizer: Authorizer;
}

/**
 * Creates a TypeService for any Connect router. It lists the registered types that the caller may list or write
 * in some tenancy. The files that describe them are returned in full, including messages of other types.
 */
export function createTypeService(options: TypeServiceOptions): ServiceImpl<typeof TypeService> {
	const files = new DescriptorFiles();
	return {
		async listTypes({ pageSize, pageToken }, call) {
			if (pageSize < 0 || pageSize > resourceServiceLimits.pageSize) {
				throw malformed(
					"page_size",
					`${pageSize} is not between 0 and ${resourceServiceLimits.pageSize}`,
				);
			}
			const access = await authenticateCall(options.authorizer, call);
			const types = options.registry
				.all()
				.filter((type) => type.key > pageToken && isVisible(type, access));
			const page = pageOf(types, pageSize || defaultPageSize, files);
			const last = page.at(-1);
			return create(ListTypesResponseSchema, {
				types: page.map(({ type, scope, schema }) => ({
					type: typeOf(type),
					scope,
					messageName: schema.typeName,
				})),
				fileDescriptorSet: files.setOf(page),
				nextPageToken: last !== undefined && page.length < types.length ? last.key : "",
			});
		},
	};
}

const everywhere = { partition: "*", namespace: "*" };

function isVisible(type: ResourceType, access: Access): boolean {
	return (
		denialOf(decideList(type, access, everywhere)) === undefined ||
		denialOf(access.check(operatorWrite, { type: type.type, tenancy: everywhere })) === undefined
	);
}

/** The first types, as many as fit on a page, and at least one. */
function pageOf(
	types: readonly ResourceType[],
	size: number,
	files: DescriptorFiles,
): readonly ResourceType[] {
	const included = new Set<DescFile>();
	let bytes = 0;
	for (const [count, type] of types.slice(0, size).entries()) {
		for (const file of filesOf(type.schema.file)) {
			if (!included.has(file)) {
				included.add(file);
				bytes += files.sizeOf(file);
			}
		}
		if (count > 0 && bytes > maxPageBytes) {
			return types.slice(0, count);
		}
	}
	return types.slice(0, size);
}

/** Encodes the descriptors of files. Each file is encoded once to determine its size. */
class DescriptorFiles {
	readonly #sizes = new WeakMap<DescFile, number>();

	sizeOf(file: DescFile): number {
		let size = this.#sizes.get(file);
		if (size === undefined) {
			size = encode([file]).byteLength;
			this.#sizes.set(file, size);
		}
		return size;
	}

	setOf(types: readonly ResourceType[]): Uint8Array<ArrayBuffer> {
		const files = new Set<DescFile>();
		for (const { schema } of types) {
			filesOf(schema.file, files);
		}
		return encode(files);
	}
}

function encode(files: Iterable<DescFile>): Uint8Array<ArrayBuffer> {
	const file = [...files].map(({ proto }) => proto);
	return toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file }));
}
