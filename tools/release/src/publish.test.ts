import { describe, expect, it } from "vitest";
import { inOrder, type Published } from "./packages.ts";
import { publishAll, type Registry } from "./publish.ts";

const packageOf = (name: string, needs: readonly string[]): Published => ({
	...{ name, needs, folder: name, isImportable: true, commands: {} },
});

describe("inOrder", () => {
	it("puts each package after those that it needs", () => {
		const packages = [packageOf("a", ["c"]), packageOf("b", []), packageOf("c", ["b"])];
		expect(inOrder(packages).map(({ name }) => name)).toEqual(["b", "c", "a"]);
	});

	it("refuses a package that needs one that is not published", () => {
		expect(() => inOrder([packageOf("a", ["tests"])])).toThrow(
			"a needs tests, which is not published",
		);
	});
});

describe("publishAll", () => {
	/** A registry that fails at one package, once. */
	function registryFailingAt(tarball: string | undefined) {
		const published: string[] = [];
		let failing = tarball;
		const registry: Registry = {
			has: async (name, version) => published.includes(`${name}-${version}.tgz`),
			async publish(each) {
				if (each === failing) {
					failing = undefined;
					throw new Error("the connection broke");
				}
				published.push(each);
			},
		};
		return { registry, published };
	}

	const ready = ["a", "b", "c"].map((name) => ({
		...{ name, version: "1.2.3", tarball: `${name}-1.2.3.tgz` },
	}));

	it("goes on after a failure where it stopped", async () => {
		const { registry, published } = registryFailingAt("b-1.2.3.tgz");
		const lines: string[] = [];
		const publish = () => publishAll(ready, registry, (line) => lines.push(line));
		await expect(publish()).rejects.toThrow("the connection broke");
		expect(published).toEqual(["a-1.2.3.tgz"]);
		await publish();
		expect(published).toEqual(["a-1.2.3.tgz", "b-1.2.3.tgz", "c-1.2.3.tgz"]);
		expect(lines).toEqual([
			"a 1.2.3 published",
			"a 1.2.3 is published already",
			"b 1.2.3 published",
			"c 1.2.3 published",
		]);
	});
});
