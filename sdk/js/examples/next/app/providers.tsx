"use client";

import { TidegateClient } from "@tidegate/client";
import { TidegateProvider } from "@tidegate/react";
import { type ReactNode, useState } from "react";

export function Providers({ children }: { children: ReactNode }) {
  const [client] = useState(() => new TidegateClient({ baseUrl: process.env.NEXT_PUBLIC_TIDEGATE! }));
  return <TidegateProvider client={client}>{children}</TidegateProvider>;
}
