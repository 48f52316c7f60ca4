import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { SimulationProcess } from "./simulation-process.fixture.ts";

const endingProcess = fileURLToPath(new URL("./ending-process.fixture.ts", import.meta.url));
const fault = "announce CHECKING";

describe("SimulationProcess", () => {
	it("says how a mutant has ended its process, and simulates the next one", async () => {
		using simulation = new SimulationProcess(endingProcess);
		const ended = await simulation.run({ fault, from: 0, runs: 1, args: [] });
		expect(ended.kind).toBe("ended");
		expect(ended.output).toContain("this mutant ends its process");
		const next = await simulation.run({ fault, from: 5, runs: 1, args: [] });
		expect(next.kind).toBe("done");
	});

	it("tries a mutant again whose process may have ended because of a former one", async () => {
		using simulation = new SimulationProcess(endingProcess);
		const found = await simulation.run({ fault, from: 1, runs: 1, args: [] });
		expect(found).toMatchObject({ kind: "found", seed: 1 });
		const next = await simulation.run({ fault, from: 5, runs: 2, args: [] });
		expect(next.kind).toBe("done");
	});
});
