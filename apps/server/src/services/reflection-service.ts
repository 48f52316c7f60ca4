import {
	create,
	createRegistry,
	type DescExtension,
	type DescFile,
	type DescMessage,
	type Registry,
	toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, type ConnectRouter, type ServiceImpl } from "@connectrpc/connect";
import {
	type ServerReflection,
	type ServerReflectionRequest,
	type ServerReflectionResponse,
	ServerReflectionResponseSchema,
} from "../gen/grpc/reflection/v1/reflection_pb.ts";

type MessageResponse = ServerReflectionResponse["messageResponse"];

/**
 * The standard reflection service of gRPC: the descriptors of all services of a router, and of the messages of resource
 * types, which are sent as `google.protobuf.Any`.
 */
export function createReflectionService(
	router: Pick<ConnectRouter, "handlers">,
	messages: Registry,
): ServiceImpl<typeof ServerReflection> {
	let created: Descriptors | undefined;
	// Created at the first call, when all services have been registered.
	const descriptors = () => {
		created ??= new Descriptors(router, messages);
		return created;
	};
	return {
		async *serverReflectionInfo(requests) {
			for await (const request of requests) {
				yield create(ServerReflectionResponseSchema, {
					validHost: request.host,
					originalRequest: request,
					messageResponse: descriptors().respond(request.messageRequest),
				});
			}
		},
	};
}

class Descriptors {
	readonly #services: readonly string[];
	readonly #types: Registry;
	readonly #files = new Map<string, DescFile>();
	/** The files of top-level and nested types and extensions, by full name: a request costs one look per dot. */
	readonly #fileBySymbol = new Map<string, DescFile>();
	/** The length of the longest of these names. */
	#longestName = 0;
	/** By the name of the extended message. */
	readonly #extensions = new Map<string, DescExtension[]>();

	constructor(router: Pick<ConnectRouter, "handlers">, messages: Registry) {
		const services = new Set(router.handlers.map(({ service }) => service));
		this.#services = [...services].map(({ typeName }) => typeName).sort();
		this.#types = createRegistry(...services, ...messages);
		for (const file of new Set([...this.#types].map((type) => type.file))) {
			this.#add(file);
		}
	}

	respond(request: ServerReflectionRequest["messageRequest"]): MessageResponse {
		switch (request.case) {
			case "listServices":
				return {
					case: "listServicesResponse",
					value: {
						$typeName: "grpc.reflection.v1.ListServiceResponse",
						service: this.#services.map((name) => ({
							$typeName: "grpc.reflection.v1.ServiceResponse",
							name,
						})),
					},
				};
			case "fileByFilename":
				return this.#fileResponse(this.#files.get(request.value), `file ${request.value}`);
			case "fileContainingSymbol":
				return this.#fileResponse(this.#fileOf(request.value), `symbol ${request.value}`);
			case "fileContainingExtension": {
				const { containingType, extensionNumber } = request.value;
				const what = `extension ${extensionNumber} of ${containingType}`;
				return this.#fileResponse(
					this.#extensionsOf(containingType).find(({ number }) => number === extensionNumber)?.file,
					what,
				);
			}
			case "allExtensionNumbersOfType":
				return {
					case: "allExtensionNumbersResponse",
					value: {
						$typeName: "grpc.reflection.v1.ExtensionNumberResponse",
						baseTypeName: request.value,
						extensionNumber: this.#extensionsOf(request.value).map(({ number }) => number),
					},
				};
			default:
				return refusal(Code.InvalidArgument, "the request is empty");
		}
	}

	/**
	 * The file that declares a type, or the type of a method, field or value. It looks once per dot, and no further than the
	 * longest name that is declared, however long the symbol is.
	 */
	#fileOf(symbol: string): DescFile | undefined {
		const name = symbol.replace(/^\./, "");
		const isLong = name.length > this.#longestName;
		let end = isLong ? name.lastIndexOf(".", this.#longestName) : name.length;
		while (end > 0) {
			const file = this.#fileBySymbol.get(name.slice(0, end));
			if (file !== undefined) {
				return file;
			}
			end = name.lastIndexOf(".", end - 1);
		}
		return undefined;
	}

	#extensionsOf(typeName: string): readonly DescExtension[] {
		return this.#extensions.get(typeName) ?? [];
	}

	/** A file, followed by the files that it imports, each before those that it imports itself. */
	#fileResponse(file: DescFile | undefined, what: string): MessageResponse {
		if (file === undefined) {
			return refusal(Code.NotFound, `${what} not found`);
		}
		return {
			case: "fileDescriptorResponse",
			value: {
				$typeName: "grpc.reflection.v1.FileDescriptorResponse",
				fileDescriptorProto: withDependencies(file).map(({ proto }) =>
					toBinary(FileDescriptorProtoSchema, proto),
				),
			},
		};
	}

	#add(file: DescFile): void {
		for (const each of withDependencies(file)) {
			if (!this.#files.has(each.proto.name)) {
				this.#files.set(each.proto.name, each);
				this.#addSymbols(each);
			}
		}
	}

	#addSymbols(file: DescFile): void {
		for (const type of declaredIn(file)) {
			// Of two files with the same name of a type, the first is found.
			if (!this.#fileBySymbol.has(type.typeName)) {
				this.#fileBySymbol.set(type.typeName, file);
				this.#longestName = Math.max(this.#longestName, type.typeName.length);
			}
		}
		for (const extension of file.extensions) {
			const { typeName } = extension.extendee;
			const known = this.#extensions.get(typeName);
			if (known === undefined) {
				this.#extensions.set(typeName, [extension]);
			} else {
				known.push(extension);
			}
		}
	}
}

/** A file and all that it imports, each file before those that it imports: read backwards, no file lacks an import. */
function withDependencies(file: DescFile): readonly DescFile[] {
	const visited = new Set<DescFile>();
	const importsFirst: DescFile[] = [];
	const visit = (each: DescFile) => {
		if (!visited.has(each)) {
			visited.add(each);
			each.dependencies.forEach(visit);
			importsFirst.push(each);
		}
	};
	visit(file);
	return importsFirst.reverse();
}

/** The types and extensions of a file, nested ones included. */
function* declaredIn({ messages, enums, services, extensions }: DescFile) {
	yield* [...enums, ...services, ...extensions];
	for (const message of messages) {
		yield* withNested(message);
	}
}

function* withNested(message: DescMessage): Generator<{ readonly typeName: string }> {
	yield message;
	yield* [...message.nestedEnums, ...message.nestedExtensions];
	for (const nested of message.nestedMessages) {
		yield* withNested(nested);
	}
}

function refusal(errorCode: Code, errorMessage: string): MessageResponse {
	return {
		case: "errorResponse",
		value: { $typeName: "grpc.reflection.v1.ErrorResponse", errorCode, errorMessage },
	};
}
