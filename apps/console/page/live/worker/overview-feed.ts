import { toBinary } from "@bufbuild/protobuf";
import type { Client, ConnectError } from "@connectrpc/connect";
import {
	OverviewSchema,
	type ServerService,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import type { Timer } from "@plinth/runtime";
import { type OverviewSample, sampleOf } from "../../overview/overview-sample.ts";
import type { LiveState } from "../live-state.ts";
import { type KeepOpenContext, keepOpen } from "./keep-open.ts";
import { RecentRates } from "./recent-rates.ts";

/** Five minutes. */
const mostSamples = 150;

/** How long the stream stays open without a listener, in milliseconds: pages share it when one replaces another. */
const lingerMs = 1_000;

/** The overview of the cluster, as a stream that is open while somebody listens to it. */
export class OverviewFeed {
	readonly #client: Client<typeof ServerService>;
	readonly #context: KeepOpenContext;
	readonly #onRefused: (error: ConnectError) => void;
	readonly #listeners = new Set<() => void>();
	readonly #rates = new RecentRates();
	#bytes: Uint8Array | undefined;
	#samples: readonly OverviewSample[] = [];
	#state: LiveState = { phase: "connecting" };
	#heardMs: number;
	#end: AbortController | undefined;
	#linger: Timer | undefined;

	constructor(
		client: Client<typeof ServerService>,
		context: KeepOpenContext,
		onRefused: (error: ConnectError) => void,
	) {
		this.#client = client;
		this.#context = context;
		this.#onRefused = onRefused;
		this.#heardMs = context.clock.now();
	}

	/** The newest overview with average rates, encoded. */
	get bytes(): Uint8Array | undefined {
		return this.#bytes;
	}

	/** Figures of the last minutes, each since the one before. */
	get samples(): readonly OverviewSample[] {
		return this.#samples;
	}

	get state(): LiveState {
		return this.#state;
	}

	/** When the newest overview came, in milliseconds since the epoch. */
	get heardMs(): number {
		return this.#heardMs;
	}

	/** Opens the stream if it is not open. The returned function ends the subscription. */
	subscribe(listener: () => void): () => void {
		this.#listeners.add(listener);
		this.#linger?.cancel();
		if (this.#end === undefined) {
			this.#end = new AbortController();
			void this.#run(this.#end.signal);
		}
		return () => {
			this.#listeners.delete(listener);
			if (this.#listeners.size === 0) {
				this.#linger = this.#context.clock.setTimer(lingerMs, () => this.close());
			}
		};
	}

	/** Ends the stream. */
	close(): void {
		this.#linger?.cancel();
		this.#end?.abort();
		this.#end = undefined;
	}

	#run(end: AbortSignal): Promise<void> {
		return keepOpen(
			{
				open: (signal) => this.#client.watchOverview({}, { signal }),
				onMessage: ({ overview }) => {
					this.#heardMs = this.#context.clock.now();
					if (overview !== undefined) {
						this.#bytes = toBinary(OverviewSchema, this.#rates.add(overview));
						this.#samples = [...this.#samples, sampleOf(overview)].slice(-mostSamples);
						this.#become({ phase: "live" });
					}
				},
				onLost: ({ rawMessage: reason }) =>
					this.#become({ phase: "lost", sinceMs: this.#heardMs, reason }),
				onRefused: (error) => {
					this.#become({ phase: "refused", reason: error.rawMessage });
					this.#onRefused(error);
				},
			},
			this.#context,
			end,
		);
	}

	#become(state: LiveState): void {
		this.#state = state;
		for (const listener of [...this.#listeners]) {
			listener();
		}
	}
}
