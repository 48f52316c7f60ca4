export { type DelayOptions, delayedBackend } from "./delayed-backend.ts";
export { recordedBackend, type StoredChange } from "./recorded-backend.ts";
