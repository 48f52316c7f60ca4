import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { referenceTo } from "@plinth/resource";
import { sleep } from "@plinth/runtime";
import { expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { restore } from "../deployments/settling.fixture.ts";
import { Lab } from "./lab.fixture.ts";
import { thing, to, widget } from "./things.fixture.ts";

/** A deployment that accepts calls, and lets them time out. */
async function withSilentDeployment() {
	let isSilent = false;
	const decorate = (transport: Transport, _from: string, target: string): Transport => ({
		stream: (...args) => transport.stream(...args),
		async unary(...args) {
			if (isSilent && target === "far") {
				await sleep(lab.runtime.clock, 5_000);
				throw new ConnectError("no response", Code.Unavailable);
			}
			return transport.unary(...args);
		},
	});
	const lab: Lab = new Lab(1, { passesPerDeployment: 10 }, decorate);
	const far = await lab.add({ name: "far", service: "alpha", region: "r2", types: [Thing] });
	const beta = await lab.add({
		...{ name: "beta", service: "beta", region: "r1" },
		...{ types: [Widget], foreignTypes: [Thing] },
	});
	return {
		...{ lab, far, beta },
		silence(): void {
			isSilent = true;
		},
	};
}

it("holds up no deletion in another one when its targets are looked up", async () => {
	const { lab, far, beta, silence } = await withSilentDeployment();
	await lab.run(far.write(thing("b")));
	for (let at = 0; at < 100; at++) {
		await lab.run(beta.write(widget(`w-${at}`, { needs: to("b", "r2") })));
	}
	await lab.pass(5_000);
	await restore(lab, far);
	silence();
	await lab.pass(600_000);
	const next = { ...referenceTo({ type: Widget.type, name: "first" }), region: "" };
	await lab.run(beta.write(widget("first")));
	await lab.run(beta.write(widget("second", { next })));
	await lab.run(beta.delete(beta.id(Widget, "first")));
	await lab.pass(20_000);
	expect(await beta.read(beta.id(Widget, "first"))).toBeUndefined();
});
