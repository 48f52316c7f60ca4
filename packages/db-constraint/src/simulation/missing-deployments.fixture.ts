import { isMessage } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { WatchEventSchema } from "@plinth/proto";
import { aborted } from "@plinth/runtime";
import { withMessages } from "../registry/balanced-transport.ts";
import { Deployment } from "../registry/meta-types.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";

/**
 * Deployments of which a server learns late: its watches of the meta deployment stall before the message that has one, for
 * up to a minute. What follows does not arrive either, nor does the end of a snapshot. Then the watches break, and the next
 * ones stall no longer.
 */
export class MissingDeployments {
	readonly #names = new Set<string>();
	readonly #streams = new Set<AbortController>();

	constructor(sim: SimulationContext, names: readonly string[]) {
		for (const name of names) {
			this.#names.add(name);
			void sim.wait(sim.random.next() * 60_000).then(() => this.#find(name));
		}
	}

	/** The transport to the meta deployment, without them. */
	hideFrom(transport: Transport): Transport {
		if (this.#names.size === 0) {
			return transport;
		}
		return {
			unary: transport.unary,
			stream: async (method, signal, timeoutMs, header, input, values) => {
				const found = new AbortController();
				this.#streams.add(found);
				const ends = AbortSignal.any(
					signal === undefined ? [found.signal] : [signal, found.signal],
				);
				const opened = await transport.stream(method, ends, timeoutMs, header, input, values);
				return withMessages(opened, this.#shown(opened.message, found, ends));
			},
		};
	}

	async *#shown<Message>(
		messages: AsyncIterable<Message>,
		found: AbortController,
		ends: AbortSignal,
	): AsyncGenerator<Message> {
		try {
			for await (const message of messages) {
				if (this.#hides(message)) {
					await aborted(ends);
					throw new ConnectError("no server responds", Code.Unavailable);
				}
				yield message;
			}
		} finally {
			this.#streams.delete(found);
		}
	}

	#hides(message: unknown): boolean {
		if (!isMessage(message, WatchEventSchema) || message.event.case !== "upsert") {
			return false;
		}
		const { type, name } = message.event.value.resource?.id ?? {};
		return type?.kind === Deployment.type.kind && this.#names.has(name ?? "");
	}

	#find(name: string): void {
		this.#names.delete(name);
		for (const found of [...this.#streams]) {
			found.abort();
		}
	}
}
