import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { idOf, type ResourceType, resourceOf } from "@plinth/resource";
import type { Random } from "@plinth/runtime";
import type { Stall } from "../faults/client-faults.ts";
import { Catalogue, Item, marketTypes, Quote, Shop, Summary } from "../market-types.fixture.ts";
import type { TestServer } from "../server/test-server.ts";

/** The targets of its faults. */
export interface TroubleOptions {
	readonly servers: readonly [TestServer, ...TestServer[]];
	readonly random: Random;
	/** Revokes the lease from its holder. */
	readonly changeLeader: () => void;
	/** Whether watches also deliver events in the wrong order, which no server may do. */
	readonly reorders: boolean;
}

const shops = ["a", "b"] as const;
const items = ["one", "two", "three", "four"] as const;
const computed = [Quote, Catalogue, Summary] as const;

type Deed = readonly [weight: number, act: () => void];

/** Performs random actions of users, and random faults of networks and clusters. */
export class Troublemaker {
	readonly #options: TroubleOptions;
	readonly #stalls: Stall[] = [];
	readonly #deeds: readonly Deed[];
	readonly #weights: number;
	readonly #restarting = new Set<TestServer>();
	#value = 0;
	/** Calls and restarts that have not ended. */
	readonly pending = new Set<Promise<void>>();
	/** Calls that ended with an unexpected error. */
	readonly violations: string[] = [];

	constructor(options: TroubleOptions) {
		this.#options = options;
		this.#deeds = this.#allDeeds();
		this.#weights = this.#deeds.reduce((sum, [weight]) => sum + weight, 0);
	}

	/** Performs one random action. */
	act(): void {
		let at = this.#options.random.next() * this.#weights;
		for (const [weight, act] of this.#deeds) {
			at -= weight;
			if (at < 0) {
				act();
				return;
			}
		}
	}

	/** Ends all faults. */
	end(): void {
		for (const server of this.#options.servers) {
			server.faults.clear();
		}
	}

	#allDeeds(): readonly Deed[] {
		const unavailable = () => new ConnectError("out of reach", Code.Unavailable);
		const compacted = () => new ConnectError("compacted", Code.OutOfRange);
		const type = () => this.#pick(marketTypes);
		const faults = () => this.#pick(this.#options.servers).faults;
		const method = () => this.#pick(["write", "delete"] as const);
		return [
			[24, () => this.#write(Item, this.#pick(items), this.#item())],
			[10, () => this.#write(Shop, this.#pick(shops), { discount: this.#value++ })],
			[5, () => this.#delete(Item, this.#pick(items))],
			[3, () => this.#delete(Shop, this.#pick(shops))],
			[2, () => this.#write(Catalogue, this.#pick(shops), { prices: { one: -1 } })],
			[3, () => this.#delete(this.#pick(computed), this.#pick([...shops, ...items]))],
			[6, () => this.#stalls.push(faults().stallWatches("event", { type: type() }))],
			[4, () => this.#stalls.push(faults().stallWatches("open", { type: type() }))],
			[3, () => this.#stalls.push(faults().stallCalls("request", { method: method() }))],
			[2, () => this.#stalls.push(faults().stallCalls("response", { method: method() }))],
			[14, () => this.#release()],
			[2, () => faults().breakWatches(unavailable(), { type: type() })],
			[4, () => faults().refuseResumption(compacted(), { type: type() })],
			[2, () => faults().failCalls("request", unavailable(), { method: method() })],
			[1, () => faults().failCalls("response", unavailable(), { method: method() })],
			[this.#options.reorders ? 8 : 0, () => faults().swapEvents({ type: type() })],
			[4, () => this.#options.changeLeader()],
			[1, () => this.#restart(this.#pick(this.#options.servers))],
		];
	}

	#restart(server: TestServer): void {
		if (!this.#restarting.has(server)) {
			this.#restarting.add(server);
			const restarted = server.restartControllers();
			this.#begin(restarted.finally(() => this.#restarting.delete(server)));
		}
	}

	#release(): void {
		const at = Math.floor(this.#options.random.next() * this.#stalls.length);
		this.#stalls.splice(at, 1)[0]?.release();
	}

	#item() {
		return { shop: this.#pick(shops), price: this.#value++ };
	}

	#write<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		name: string,
		init: MessageInitShape<Desc>,
	): void {
		const data = create(type.schema, init);
		const resource = resourceOf(type, { id: idOf(type, name), data });
		this.#begin(this.#pick(this.#options.servers).backgroundClient.write({ resource }));
	}

	#delete(type: ResourceType, name: string): void {
		this.#begin(
			this.#pick(this.#options.servers).backgroundClient.delete({ id: idOf(type, name) }),
		);
	}

	#begin(call: Promise<unknown>): void {
		const ended = call.then(
			() => {},
			(error: unknown) => {
				// A user's write may conflict with others repeatedly.
				if (!(error instanceof ConnectError && error.code === Code.Aborted)) {
					this.violations.push(`a call or a restart failed: ${error}`);
				}
			},
		);
		const done = ended.then(() => {
			this.pending.delete(done);
		});
		this.pending.add(done);
	}

	#pick<const Choices extends readonly [unknown, ...unknown[]]>(choices: Choices): Choices[number] {
		return choices[Math.floor(this.#options.random.next() * choices.length)] ?? choices[0];
	}
}
