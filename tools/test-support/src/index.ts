export { type Tool, toolVersion } from "./tools.ts";
export { describeWith, itWith } from "./with-tools.ts";
