export { forEachSeed, replay, runs, seconds, seed, seeds } from "./seeds.ts";
export { suspendProcess } from "./suspend-process.ts";
export { temporaryFolder } from "./temporary-folder.ts";
export { type Tool, toolVersion } from "./tools.ts";
export { describeWith, itWith } from "./with-tools.ts";
