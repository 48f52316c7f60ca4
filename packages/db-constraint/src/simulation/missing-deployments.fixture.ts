import { isMessage } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { WatchEventSchema } from "@plinth/proto";
import { Deployment } from "../registry/meta-types.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";

/** Options of `MissingDeployments`. */
export interface MissingDeploymentsOptions {
	/** The names of their Deployments. */
	readonly names: readonly string[];
	/** Whether the deployment of the server has taken over from another one. */
	readonly isSuccessor: () => boolean;
}

/**
 * Deployments that a server does not find at the meta deployment for a while, as if its server there were far behind.
 * Then the watch ends, and the next one has them. Snapshots are strong reads, and a successor relies on that: the watches
 * that it begins miss nothing.
 */
export class MissingDeployments {
	readonly #names = new Set<string>();
	readonly #isSuccessor: () => boolean;
	readonly #streams = new Set<AbortController>();

	constructor(sim: SimulationContext, { names, isSuccessor }: MissingDeploymentsOptions) {
		this.#isSuccessor = isSuccessor;
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
				if (this.#isSuccessor()) {
					return transport.stream(method, signal, timeoutMs, header, input, values);
				}
				const found = new AbortController();
				this.#streams.add(found);
				const ends = AbortSignal.any(
					signal === undefined ? [found.signal] : [signal, found.signal],
				);
				const opened = await transport.stream(method, ends, timeoutMs, header, input, values);
				return { ...opened, message: this.#shown(opened.message, found) };
			},
		};
	}

	async *#shown<Message>(
		messages: AsyncIterable<Message>,
		found: AbortController,
	): AsyncGenerator<Message> {
		let hasHidden = false;
		try {
			for await (const message of messages) {
				if (this.#hides(message)) {
					hasHidden = true;
				} else {
					yield message;
				}
			}
		} catch (failure) {
			// Only a new snapshot has what was hidden, whatever has ended this stream.
			throw hasHidden ? new ConnectError("the version is too old", Code.OutOfRange) : failure;
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
