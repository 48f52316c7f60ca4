import { Code, ConnectError } from "@connectrpc/connect";
import type { Resource, WatchEvent } from "@plinth/proto";
import { WatchCheck } from "./checks/watch-check.ts";
import type { Cluster } from "./cluster/cluster.ts";
import { goodType, isIn } from "./goods.ts";
import type { Protocol } from "./network/client-transport.ts";
import type { Faults } from "./network/faults.ts";

/** What a watch shows. */
export interface View {
	readonly partition: string;
	readonly namePrefix: string;
}

/** Options of `Watcher`. */
export interface WatcherOptions {
	readonly cluster: Cluster;
	readonly faults: Faults;
	/** Which of the agents it calls. */
	readonly agent: number;
	readonly protocol: Protocol;
	/** The watches: of one call each, or all in one set. */
	readonly views: readonly View[];
	readonly onEvent: () => void;
	readonly onViolation: (text: string) => void;
}

/** How long a client waits before it watches again, in milliseconds. */
const pauseMs = 500;

/** A client that watches goods at an agent, and watches again after the last version when its watch ends. */
export class Watcher {
	readonly #options: WatcherOptions;
	/** The checks of the current watches, in the order of the views. */
	#checks: readonly WatchCheck[];
	/** The versions to resume after. */
	#versions: string[];

	constructor(options: WatcherOptions) {
		this.#options = options;
		this.#versions = options.views.map(() => "");
		this.#checks = [];
	}

	/** Whether it has received all that has happened. */
	get isCurrent(): boolean {
		return this.#checks.length > 0 && this.#checks.every(({ isCurrent }) => isCurrent);
	}

	async run(signal: AbortSignal): Promise<void> {
		const { faults, onViolation } = this.#options;
		while (!signal.aborted) {
			try {
				await this.#watch(signal);
			} catch (failure) {
				if (signal.aborted) {
					return;
				}
				const { code } = ConnectError.from(failure);
				if (code === Code.OutOfRange || code === Code.Aborted) {
					this.#versions = this.#versions.map(() => "");
				} else if (code !== Code.Unavailable) {
					onViolation(`a watch has ended with ${failure}`);
				}
				this.#checks = [];
			}
			await faults.wait(pauseMs);
		}
	}

	async #watch(signal: AbortSignal): Promise<void> {
		const { cluster, agent: index, protocol, views, onEvent, onViolation } = this.#options;
		const { agent, resources } = cluster.clientOf(index, protocol);
		const { shown } = agent;
		const checks = views.map(
			(view, at) =>
				new WatchCheck({
					...{
						history: cluster.history,
						sees: sees(view),
						notBefore: () => (agent.isRunning ? shown : 0),
					},
					afterVersion: this.#versions[at] ?? "",
					onViolation: (text) => onViolation(`at ${agent.name}, ${view.partition}: ${text}`),
				}),
		);
		this.#checks = checks;
		const requests = views.map(({ partition, namePrefix }, at) => ({
			...{ type: goodType, namePrefix, afterVersion: this.#versions[at] ?? "" },
			tenancy: { partition, namespace: "*" },
			region: partition === "*" ? "*" : "",
			bookmarks: at % 2 === 0,
		}));
		const receive = (at: number, event: WatchEvent) => {
			const check = checks[at];
			check?.add(event);
			agent.hasShown(event.version);
			this.#versions[at] = check?.version ?? "";
			onEvent();
		};
		if (requests.length === 1) {
			for await (const event of resources.watchList(requests[0] ?? {}, { signal })) {
				receive(0, event);
			}
			return;
		}
		const watches = requests.map((request, at) => ({ id: String(at), request }));
		for await (const { watchId, content } of resources.watchSet({ watches }, { signal })) {
			if (content.case === "event") {
				receive(Number(watchId), content.value);
			} else if (content.case === "end") {
				throw new ConnectError(content.value.message, content.value.code);
			}
		}
	}
}

function sees({ partition, namePrefix }: View): (resource: Resource) => boolean {
	const isInPartition = partition === "*" ? () => true : isIn(partition);
	return (resource) =>
		isInPartition(resource) && (resource.id?.name.startsWith(namePrefix) ?? false);
}
