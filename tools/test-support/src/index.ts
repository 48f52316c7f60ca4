export { addNote } from "./add-note.ts";
export { reachableBytes } from "./reachable-bytes.ts";
export { forEachSeed, replay, runs, seconds, seed, seeds } from "./seeds.ts";
export { isStreamFault, type StreamFault, streamFaults, withStreamFault } from "./stream-faults.ts";
export { temporaryFolder } from "./temporary-folder.ts";
export { type Tool, toolVersion } from "./tools.ts";
export { describeWith, itWith } from "./with-tools.ts";
