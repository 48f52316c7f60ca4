import { parseArgs } from "node:util";
import { Regions } from "./src/regions.ts";

const { values } = parseArgs({
	options: {
		"data-dir": { type: "string", default: "./data/regions" },
		"base-port": { type: "string", default: "7600" },
	},
});
const regions = new Regions({
	dataDirectory: values["data-dir"],
	basePort: Number(values["base-port"]),
	versions: { devices: "v1" },
});
let stopping = false;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
	process.on(signal, () => {
		stopping = true;
		void regions.stop().then(() => process.exit(0));
	});
}
try {
	await regions.start();
	for (const { plan, address, pid } of regions.servers.values()) {
		console.log(`${plan.name.padEnd(20)} ${address}   process ${pid}`);
	}
	console.log(`\nlogs and data are in ${values["data-dir"]}; Ctrl-C stops all. Next: the README.`);
} catch (failure) {
	if (!stopping) {
		console.error(failure instanceof Error ? failure.message : failure);
		await regions.stop();
		process.exit(1);
	}
}
