import type { ReactNode } from "react";
import { Providers } from "./providers";

export const metadata = { title: "Tidegate with Next.js", icons: "data:," };

export default function Layout({ children }: { children: ReactNode }) {
  return (
    <html lang="en">
      <body>
        <Providers>{children}</Providers>
      </body>
    </html>
  );
}
