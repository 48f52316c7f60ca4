import type { Random } from "@plinth/runtime";
import { type SeededRuntime, seededRuntime } from "@plinth/runtime/testing";
import { drawFaults, type Faults, noFaults } from "./faults.fixture.ts";
import { Observer } from "./observer.fixture.ts";
import type {
	SimulatedDeployment,
	SimulatedMetaDeployment,
	SimulatedProcess,
} from "./participants.fixture.ts";
import { Splits } from "./splits.fixture.ts";
import { Trace } from "./trace.fixture.ts";
import { type Workload, workloadNames, workloads } from "./workload.fixture.ts";

/** Where servers may listen: a few more than there are servers. */
const hosts = [
	"http://host-1",
	...Array.from({ length: 11 }, (_, at) => `http://host-${at + 2}`),
] as const;

/** Options of a simulation. */
export interface SimulationOptions {
	/** Whether to log what happens. Default: false. */
	readonly isTracing?: boolean;
	/** One of so many seeds restores a deployment of things or widgets, or deletes one. Default: 0, none. */
	readonly losses?: number;
	/** Whether each seed restores the meta deployment. Default: false, some do. */
	readonly restoresMeta?: boolean;
	/** Whether each seed switches schemas, and users reference twice as often. Default: false, some switch. */
	readonly switchesSchemas?: boolean;
}

/** The state that all parts of a simulation share. */
export class SimulationContext {
	readonly runtime: SeededRuntime;
	readonly deployments: SimulatedDeployment[] = [];
	readonly meta: SimulatedMetaDeployment;
	/** Who can't reach the meta deployment. */
	readonly splits = new Splits();
	readonly trace: Trace;
	readonly observer: Observer;
	/** The number of commits of the last deployment that are held now. */
	held = 0;
	/** Whether schemas are switched. */
	readonly switches: boolean;
	/** Whether users reference twice as often, which shows more of what a switch can break. */
	readonly hasManyReferences: boolean;
	/** Whether deployments of a service have different versions of its type, and switch these. */
	readonly versionsDiffer: boolean;
	/** In some runs so few that passes often wait for others. */
	readonly passesPerDeployment: number;
	faults: Faults;
	readonly #ends: (() => void)[] = [];
	readonly workload: Workload;
	/** Whether servers see the commits of other servers with a delay. */
	readonly isLagging: boolean;
	/** Whether a deployment is restored, or its Deployment deleted. */
	readonly hasLoss: boolean;
	/** Whether the meta deployment is restored from a backup. */
	readonly restoresMeta: boolean;
	/**
	 * Whether there are only two deployments, and users take fewer steps. Most races need no more, and such a run finds as
	 * many faults per second as a large one; some need three deployments.
	 */
	readonly isSmall: boolean;
	/**
	 * Whether the servers of each deployment announce one address, and there are two of them. It leads to the one that runs
	 * for the longest time: as a load balancer does, to which others keep a connection.
	 */
	readonly sharesAddresses: boolean;
	/** Whether a deletion is planned in the end, and must do what its plan foretells. */
	readonly foretells: boolean;
	/** What deployments have lost, for reports. */
	readonly losses: string[] = [];
	/** How many steps all users take, and have taken. */
	steps = { all: 0, taken: 0 };

	constructor(
		seed: number,
		options: SimulationOptions,
		createMeta: (sim: SimulationContext) => SimulatedMetaDeployment,
	) {
		const {
			isTracing = false,
			losses = 0,
			restoresMeta = false,
			switchesSchemas = false,
		} = options;
		this.hasLoss = losses > 0 && seed % losses === 3 % losses;
		// Each deployment changes all of its guards for each successor, also that of the meta deployment.
		this.runtime = seededRuntime({ seed, maxSteps: this.hasLoss ? 2_000_000 : 1_000_000 });
		this.passesPerDeployment = seed % 4 === 1 ? 1 : 100;
		this.isSmall = seed % 3 !== 0;
		this.foretells = seed % 4 === 2;
		this.sharesAddresses = seed % 10 === 9;
		this.trace = new Trace(this.runtime.clock, isTracing);
		this.workload = workloads[this.pick(workloadNames)];
		this.switches = this.happens(0.25) || switchesSchemas;
		this.hasManyReferences = switchesSchemas;
		this.versionsDiffer = !this.switches && this.happens(0.3);
		this.observer = new Observer(this.trace, this.versionsDiffer);
		this.isLagging = this.happens(0.4);
		this.faults = drawFaults(this.runtime.random, this.workload, this.versionsDiffer);
		this.restoresMeta = this.happens(this.hasLoss ? 0.3 : 0.1) || restoresMeta;
		this.meta = createMeta(this);
	}

	get random(): Random {
		return this.runtime.random;
	}

	/** The servers that listen at an address, or the one to which a load balancer at the address leads. */
	serversAt(address: string): readonly SimulatedProcess[] {
		const found: SimulatedProcess[] = [];
		addServersAt(address, this.meta, found);
		for (const deployment of this.deployments) {
			if (deployment.sharedAddress === address) {
				return deployment.servers.filter(({ transport }) => transport !== undefined).slice(0, 1);
			}
			addServersAt(address, deployment, found);
		}
		return found;
	}

	/**
	 * An address at which no server listens. It may have been that of another deployment's.
	 *
	 * @param before - the address of the server that is replaced, which the new one may have as well.
	 */
	freeAddress(before?: string): string {
		if (before !== undefined && this.serversAt(before).length === 0 && this.happens(0.5)) {
			return before;
		}
		const free = hosts.filter((host) => this.serversAt(host).length === 0);
		return free[this.below(free.length)] ?? hosts[0];
	}

	/** Calls the function when the world has ended. */
	atEnd(end: () => void): void {
		this.#ends.push(end);
	}

	/** Ends the world: nothing of it may keep it in memory. */
	end(): void {
		for (const end of this.#ends) {
			end();
		}
	}

	/** Ends all faults. */
	stopFaults(): void {
		this.faults = noFaults;
		this.splits.cut([], []);
		this.trace.add("faults", () => "no more faults from now on");
	}

	/** Draws whether an event of this probability happens now. */
	happens(probability: number): boolean {
		return probability > 0 && this.random.next() < probability;
	}

	/** Draws an integer from 0 up to, but not including, the limit. */
	below(limit: number): number {
		return Math.floor(this.random.next() * limit);
	}

	/** Draws one of several. */
	pick<const Items extends readonly [unknown, ...unknown[]]>(items: Items): Items[number] {
		return items[this.below(items.length)] ?? items[0];
	}

	/** Draws one of any number; `undefined` if there is none. */
	pickOf<Item>(items: readonly Item[]): Item | undefined {
		return items[this.below(items.length)];
	}

	/** Delays a storage step or a message: by some turns of the scheduler, rarely by seconds or minutes. */
	delay(): Promise<void> | undefined {
		if (!this.happens(this.faults.turn)) {
			return this.#pauseAtTimes();
		}
		// One promise for all turns: there are thousands of them in each world.
		return new Promise((resolve) => {
			const { scheduler } = this.runtime;
			const turn = () => {
				if (this.happens(this.faults.turn)) {
					scheduler.schedule(turn);
				} else {
					resolve(this.#pauseAtTimes());
				}
			};
			scheduler.schedule(turn);
		});
	}

	#pauseAtTimes(): Promise<void> | undefined {
		return this.happens(this.faults.slow)
			? this.wait(this.random.next() * this.pick([50, 3_000, 20_000, 90_000]))
			: undefined;
	}

	/** Holds a commit for a while. Users see `held` and may act while it is not zero. */
	async hold(): Promise<void> {
		if (this.happens(this.faults.held)) {
			this.held += 1;
			await this.wait(this.random.next() * this.pick([300, 3_000, 10_000]));
			this.held -= 1;
		}
	}

	/** Waits on the clock of the simulation, independently of any server. */
	wait(ms: number): Promise<void> {
		return new Promise((resolve) => this.runtime.clock.setTimer(ms, resolve));
	}
}

function addServersAt(
	address: string,
	{ servers }: { readonly servers: Iterable<SimulatedProcess> },
	found: SimulatedProcess[],
): void {
	for (const server of servers) {
		if (server.address === address) {
			found.push(server);
		}
	}
}
