import type { MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, Code, ConnectError } from "@connectrpc/connect";
import type {
	DeleteRequestSchema,
	DeleteResponse,
	ListByOwnerRequestSchema,
	ListByOwnerResponse,
	ListRequestSchema,
	ListResponse,
	MutateAndValidateRequestSchema,
	MutateAndValidateResponse,
	ReadRequestSchema,
	ReadResponse,
	WatchEvent,
	WatchListRequestSchema,
	WatchSetEvent,
	WatchSetRequestSchema,
	WriteRequestSchema,
	WriteResponse,
	WriteStatusRequestSchema,
	WriteStatusResponse,
} from "@plinth/proto";
import { type FamilyLike, familyKey } from "@plinth/resource";
import type { ResourceClient } from "./resource-client.ts";

/** The header that carries the fence of a lease into the commit of a write. */
export const fenceHeader = "x-plinth-fence";

/** The header that names the controller of a write, percent-encoded: names may have characters that headers can't have. */
const controllerHeader = "x-plinth-controller";

/** The options of a runtime client. */
export interface RuntimeClientOptions {
	/** Makes the calls, and clones requests and responses. */
	readonly client: ResourceClient;
	/** The name of the controller, for the history of what it writes. */
	readonly controller: string;
	/** Ends reads. Called when the first read is made. */
	readonly signal: () => AbortSignal;
	/** The encoded fence that writes carry, if the controller holds a lease. */
	readonly fence: string | undefined;
	/** Why writes are refused now, or `undefined`. */
	readonly refusal: () => string | undefined;
	/** A write to the family was acknowledged with that version. */
	readonly onWritten: (family: string, version: string) => void;
}

/**
 * The client that a reconciler writes through: it fences writes, and reports an acknowledged write
 * before the caller receives the response. Reads end with the work's signal; writes do not, since a
 * write that is abandoned may still be committed.
 */
export class RuntimeClient implements ResourceClient {
	readonly #options: RuntimeClientOptions;
	readonly #controller: string;
	#writing = 0;
	#closed = false;
	#settled: (() => void) | undefined;

	constructor(options: RuntimeClientOptions) {
		this.#options = options;
		this.#controller = encodeURIComponent(options.controller.toWellFormed());
	}

	read(
		request: MessageInitShape<typeof ReadRequestSchema>,
		options?: CallOptions,
	): Promise<ReadResponse> {
		return this.#options.client.read(request, this.#readOptions(options));
	}

	list(
		request: MessageInitShape<typeof ListRequestSchema>,
		options?: CallOptions,
	): Promise<ListResponse> {
		return this.#options.client.list(request, this.#readOptions(options));
	}

	listByOwner(
		request: MessageInitShape<typeof ListByOwnerRequestSchema>,
		options?: CallOptions,
	): Promise<ListByOwnerResponse> {
		return this.#options.client.listByOwner(request, this.#readOptions(options));
	}

	mutateAndValidate(
		request: MessageInitShape<typeof MutateAndValidateRequestSchema>,
		options?: CallOptions,
	): Promise<MutateAndValidateResponse> {
		return this.#options.client.mutateAndValidate(request, this.#readOptions(options));
	}

	watchList(
		request: MessageInitShape<typeof WatchListRequestSchema>,
		options?: CallOptions,
	): AsyncIterable<WatchEvent> {
		return this.#options.client.watchList(request, this.#readOptions(options));
	}

	watchSet(
		request: MessageInitShape<typeof WatchSetRequestSchema>,
		options?: CallOptions,
	): AsyncIterable<WatchSetEvent> {
		return this.#options.client.watchSet(request, this.#readOptions(options));
	}

	async write(
		request: MessageInitShape<typeof WriteRequestSchema>,
		options?: CallOptions,
	): Promise<WriteResponse> {
		const { client } = this.#options;
		return this.#write(
			request.resource?.id?.type,
			() => client.write(request, this.#writeOptions(options)),
			(response) => response.resource?.version,
		);
	}

	async writeStatus(
		request: MessageInitShape<typeof WriteStatusRequestSchema>,
		options?: CallOptions,
	): Promise<WriteStatusResponse> {
		const { client } = this.#options;
		return this.#write(
			request.id?.type,
			() => client.writeStatus(request, this.#writeOptions(options)),
			(response) => response.resource?.version,
		);
	}

	async delete(
		request: MessageInitShape<typeof DeleteRequestSchema>,
		options?: CallOptions,
	): Promise<DeleteResponse> {
		const { client } = this.#options;
		return this.#write(
			request.id?.type,
			() => client.delete(request, this.#writeOptions(options)),
			(response) => (request.dryRun ? undefined : response.version),
		);
	}

	/** Refuses further writes, and resolves when none is in flight. */
	close(): Promise<void> | undefined {
		this.#closed = true;
		return this.#writing === 0
			? undefined
			: new Promise((resolve) => {
					this.#settled = resolve;
				});
	}

	async #write<Response>(
		type: Partial<FamilyLike> | undefined,
		call: () => Promise<Response>,
		versionOf: (response: Response) => string | undefined,
	): Promise<Response> {
		const refusal = this.#closed
			? "the function that started it has ended; await every write"
			: this.#options.refusal();
		if (refusal !== undefined) {
			throw new ConnectError(`write refused: ${refusal}`, Code.FailedPrecondition);
		}
		this.#writing += 1;
		try {
			const response = await call();
			const version = versionOf(response);
			if (version) {
				const family = familyKey({ group: type?.group ?? "", kind: type?.kind ?? "" });
				this.#options.onWritten(family, version);
			}
			return response;
		} finally {
			this.#writing -= 1;
			if (this.#writing === 0) {
				this.#settled?.();
			}
		}
	}

	#readOptions(options: CallOptions | undefined): CallOptions {
		const own = this.#options.signal();
		const signal = options?.signal ? AbortSignal.any([own, options.signal]) : own;
		return { ...options, signal };
	}

	#writeOptions(options: CallOptions | undefined): CallOptions {
		const { fence } = this.#options;
		const headers = new Headers(options?.headers);
		headers.set(controllerHeader, this.#controller);
		if (fence !== undefined) {
			headers.set(fenceHeader, fence);
		}
		return { ...options, headers };
	}
}
