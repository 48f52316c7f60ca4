import { createCatalogModule } from "./catalog-module.ts";
import { networkProber } from "./probe/network-prober.ts";

export default createCatalogModule(networkProber);
