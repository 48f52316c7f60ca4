import { describe, expect, it } from "vitest";
import { dockerfiles, lastStageOf } from "./artifacts.fixture.ts";

describe.each(dockerfiles)("%s", (file) => {
	const stage = lastStageOf(file);
	const all = (keyword: string) =>
		stage.filter((each) => each.keyword === keyword).map(({ text }) => text);

	it("does not run as root, and only its data can be written", () => {
		expect(all("USER")).toEqual(["node"]);
		expect(all("VOLUME")).toEqual(["/data"]);
		expect(all("ENV").join()).toContain("PLINTH_DATA_DIR=/data");
		// Files are copied before, and belong to root.
		const last = stage.findLastIndex(({ keyword }) => ["RUN", "COPY"].includes(keyword));
		expect(last).toBeLessThan(stage.findIndex(({ keyword }) => keyword === "USER"));
	});

	it("checks its health without a shell or another program", () => {
		expect(all("HEALTHCHECK").join()).toMatch(/CMD \["node", "-e", ".*\/readyz/s);
		expect(all("CMD")).toEqual(['["node_modules/.bin/plinth-server"]']);
	});

	it("names its base image by the version of Node that the project runs on", () => {
		expect(all("FROM")).toEqual([`node:${process.versions.node.split(".")[0]}-slim`]);
		expect(all("EXPOSE")).toEqual(["7575"]);
	});
});
