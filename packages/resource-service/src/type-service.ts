import { clearField, clone, create, type DescFile, toBinary } from "@bufbuild/protobuf";
import {
	type FileDescriptorProto,
	FileDescriptorProtoSchema,
	FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { ListTypesResponseSchema, type TypeService } from "@plinth/proto";
import { keptComments } from "@plinth/proto-comments";
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

/** A descriptor as it is sent, and its size in bytes. */
interface SentFile {
	readonly proto: FileDescriptorProto;
	readonly size: number;
}

/**
 * Encodes the descriptors of files. Of their source information, it sends the comments that people read who use the
 * types. The descriptors of one type are sent without comments if they would be too large for a page with them.
 */
class DescriptorFiles {
	readonly #sent = new WeakMap<DescFile, SentFile>();

	sizeOf(file: DescFile): number {
		return this.#sentOf(file).size;
	}

	setOf(types: readonly ResourceType[]): Uint8Array<ArrayBuffer> {
		const files = new Set<DescFile>();
		for (const { schema } of types) {
			filesOf(schema.file, files);
		}
		const sent = [...files].map((each) => this.#sentOf(each));
		const bytes = sent.reduce((sum, { size }) => sum + size, 0);
		const file = sent.map(({ proto }) => (bytes > maxPageBytes ? withoutComments(proto) : proto));
		return toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file }));
	}

	/** It is encoded once to determine its size. */
	#sentOf(file: DescFile): SentFile {
		let sent = this.#sent.get(file);
		if (sent === undefined) {
			const proto = withoutComments(file.proto);
			const comments = keptComments(file.proto);
			if (comments !== undefined) {
				proto.sourceCodeInfo = comments;
			}
			sent = { proto, size: toBinary(FileDescriptorProtoSchema, proto).byteLength };
			this.#sent.set(file, sent);
		}
		return sent;
	}
}

function withoutComments(file: FileDescriptorProto): FileDescriptorProto {
	const copy = clone(FileDescriptorProtoSchema, file);
	clearField(copy, FileDescriptorProtoSchema.field.sourceCodeInfo);
	return copy;
}
