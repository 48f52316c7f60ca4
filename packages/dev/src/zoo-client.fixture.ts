import { setTimeout as sleep } from "node:timers/promises";
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";

const type = { group: "zoo", groupVersion: "v1", kind: "Animal" };
const tenancy = { partition: "default", namespace: "default" };

/** A client of the project of the tests. It knows none of its messages: they change. */
export class ZooClient {
	readonly #resources: Client<typeof ResourceService>;
	/** The newest reason of the condition of each animal that the watch has reported. */
	readonly seen = new Map<string, string>();
	/** How often the watch was opened. */
	watches = 0;

	constructor(baseUrl: string) {
		this.#resources = createClient(ResourceService, createGrpcTransport({ baseUrl }));
	}

	/** Writes an animal. Attempts that end with a restart are repeated. */
	async write(name: string, species = "bear"): Promise<void> {
		const text = new TextEncoder().encode(species);
		// Field 1, a string.
		const value = new Uint8Array([10, text.length, ...text]);
		const data = { typeUrl: "type.googleapis.com/zoo.v1.Animal", value };
		for (;;) {
			try {
				await this.#resources.write({ resource: { id: { type, tenancy, name }, data } });
				return;
			} catch (failure) {
				if (!isTransient(failure)) {
					throw failure;
				}
				await sleep(20);
			}
		}
	}

	/** Watches all animals across restarts until the signal aborts. */
	async watch(signal: AbortSignal): Promise<void> {
		let afterVersion = "";
		while (!signal.aborted) {
			try {
				this.watches += 1;
				const events = this.#resources.watchList({ type, afterVersion }, { signal, timeoutMs: 0 });
				for await (const { event, version } of events) {
					if (event.case === "upsert") {
						const { id, status = {} } = event.value.resource ?? {};
						const reason = status.keeper?.conditions[0]?.reason ?? "";
						this.seen.set(id?.name ?? "", reason);
					}
					afterVersion = version === "" ? afterVersion : version;
				}
			} catch (failure) {
				const { code } = ConnectError.from(failure);
				if (code === Code.OutOfRange || code === Code.Aborted) {
					afterVersion = "";
				} else if (!isTransient(failure)) {
					throw failure;
				}
				await sleep(20);
			}
		}
	}
}

function isTransient(failure: unknown): boolean {
	const { code } = ConnectError.from(failure);
	// Connect reports an interrupted HTTP/2 stream with one of these.
	return [Code.Unavailable, Code.Internal, Code.Aborted, Code.Canceled].includes(code);
}
