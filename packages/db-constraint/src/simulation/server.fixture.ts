import { Refused } from "@plinth/storage";
import { MissingDeployments } from "./missing-deployments.fixture.ts";
import type { SimulatedDeployment, SimulatedServer } from "./participants.fixture.ts";
import type { SimulatedSchema } from "./schemas.fixture.ts";
import { ServerProcess, type SharedState } from "./server-process.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";

/** See `SimulatedServer`. */
export class Server extends ServerProcess implements SimulatedServer {
	readonly deployment: SimulatedDeployment;
	readonly schema: SimulatedSchema;

	/** @param addressBefore - the address of the server that has crashed last. */
	constructor(
		sim: SimulationContext,
		deployment: SimulatedDeployment,
		shared: SharedState,
		addressBefore: string | undefined,
	) {
		const { info, schema, isForced } = deployment;
		const missing = new MissingDeployments(
			sim,
			sim.deployments
				.filter((other) => other.info !== info && sim.happens(sim.faults.missing))
				.map((other) => other.info.name),
		);
		super(sim, {
			...shared,
			...{ name: info.name, service: info.service, region: info.region },
			...{ version: schema.version, descriptor: schema.descriptor, types: schema.types },
			address: sim.freeAddress(addressBefore),
			announced: deployment.sharedAddress,
			mayDrop: isForced,
			connect: (address, network) =>
				sim.meta.addresses.includes(address) ? missing.hideFrom(network) : network,
			onEnd: (failure) => {
				deployment.crash(this);
				if (failure instanceof Refused && failure.message.includes("--drop-versions-in-use")) {
					deployment.refused();
				}
				void sim.wait(500).then(() => deployment.start());
			},
		});
		this.deployment = deployment;
		this.schema = schema;
	}
}
