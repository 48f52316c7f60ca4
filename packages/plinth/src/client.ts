/** What programs import that call a server from elsewhere. */
export {
	type Client,
	Code,
	ConnectError,
	createClient,
	type Interceptor,
	type Transport,
} from "@connectrpc/connect";
export { BackupService, ControllerService, ResourceService, TypeService } from "@plinth/proto";
export {
	type ConnectionOptions,
	createPlinthTransport,
	type PlinthTransport,
	type PlinthTransportOptions,
} from "@plinth/rpc-client";
