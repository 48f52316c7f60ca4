export { runsOr, seedOr, seedsOr } from "./seeds.ts";
export { type Tool, toolVersion } from "./tools.ts";
export { describeWith, itWith } from "./with-tools.ts";
