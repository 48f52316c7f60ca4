import { toBinary } from "@bufbuild/protobuf";
import {
	type StreamResponse,
	StreamResponseSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { peeringLimits } from "../limits.ts";

/** The messages of a stream that were received and are not stored. Bounded by the window, also if the peer ignores it. */
export class Inbox {
	readonly #messages: { readonly message: StreamResponse; readonly size: number }[] = [];
	#bytes = 0;
	#changed = Promise.withResolvers<void>();
	#failure: { readonly reason: unknown } | undefined;

	get isEmpty(): boolean {
		return this.#messages.length === 0;
	}

	/** Resolves when more may be read. */
	async add(message: StreamResponse): Promise<void> {
		const size = sizeOf(message);
		this.#messages.push({ message, size });
		this.#bytes += size;
		this.#notify();
		const { windowMessages, windowBytes } = peeringLimits;
		while (this.#messages.length > windowMessages || this.#bytes > windowBytes) {
			await this.#changed.promise;
			if (this.#failure !== undefined) {
				return;
			}
		}
	}

	/** Ends `take` with the reason, once all messages are taken. */
	fail(reason: unknown): void {
		this.#failure ??= { reason };
		this.#notify();
	}

	/**
	 * Resolves to what one commit may cover, as soon as there is something.
	 *
	 * @throws the reason of `fail`.
	 */
	async take(): Promise<readonly StreamResponse[]> {
		while (this.isEmpty) {
			if (this.#failure !== undefined) {
				throw this.#failure.reason;
			}
			await this.#changed.promise;
		}
		const { batchMessages, batchBytes } = peeringLimits;
		let count = 0;
		let bytes = 0;
		for (const { size } of this.#messages) {
			if (count > 0 && (count >= batchMessages || bytes + size > batchBytes)) {
				break;
			}
			count += 1;
			bytes += size;
		}
		this.#bytes -= bytes;
		const taken = this.#messages.splice(0, count);
		this.#notify();
		return taken.map(({ message }) => message);
	}

	#notify(): void {
		this.#changed.resolve();
		this.#changed = Promise.withResolvers();
	}
}

/** The bytes of a message with all that it has, also what is not copied, and of what it needs in memory besides. */
function sizeOf(message: StreamResponse): number {
	return 1_024 + toBinary(StreamResponseSchema, message).length;
}
