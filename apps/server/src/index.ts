export type { ListenAddress } from "./configuration/listen-address.ts";
export { defaultListenerLimits, type ListenerLimits } from "./listener/limits.ts";
export { ListenError } from "./listener/listener.ts";
export { createLogger, type LoggerOptions } from "./logging/pino-logger.ts";
export {
	defineModule,
	type Module,
	type ModuleContext,
	type ModuleDefinition,
} from "./module/define-module.ts";
export { loadModule, ModuleError } from "./module/load-module.ts";
export { createServer, type Server, type ServerOptions } from "./server.ts";
export type { StorageChoice } from "./storage-choice.ts";
