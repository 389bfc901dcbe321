/** The whole command line of Chromium. */

export interface FlagOptions {
  /** Sent with every request, of the page and of its workers. */
  userAgent: string;
  /** Chromium's profile folder. */
  profile: string;
  /** The only way out: `http://127.0.0.1:port`. */
  proxyUrl: string;
  isRoot: boolean;
}

/**
 * Fonts, media and SVG documents, by URL, for Network.setBlockedURLs: Chromium drops them itself, while intercepting
 * requests one by one takes a round trip each and halves the speed. `*` is a wildcard. Images are not among them:
 * Chromium does not begin to load those at all (`imagesEnabled`), while it reports each blocked request four times.
 */
export const BLOCKED_URLS: readonly string[] =
  'svg woff woff2 ttf otf eot mp4 webm m4v mov avi mp3 ogg ogv wav m4a flac m3u8 mpd'
    .split(' ')
    .flatMap((ending) => [`*.${ending}`, `*.${ending}?*`]);

const DISABLED_FEATURES = [
  // A new renderer view, frame and script world for each page, for back navigation and site isolation.
  'RenderDocument,ProactivelySwapBrowsingInstance,BackForwardCache,SpareRendererForSitePerProcess',
  // Features that interfere with Playwright.
  'AvoidUnnecessaryBeforeUnloadCheckSync,AvoidCorsURLLoaderRestartOnRedirect,DestroyProfileOnBrowserClose',
  'ThirdPartyStoragePartitioning',
  // Fetch exactly the URL that was requested.
  'HttpsUpgrades,HttpsFirstBalancedModeAutoEnable',
  // Features for people, or features that contact Google's services.
  'AimEnabled,HistoryEmbeddings,LensOverlay,LoadingPredictor,MediaRouter,NetworkTimeServiceQuerying',
  'OptimizationGuideModelDownloading,OptimizationHints,PageContentAnnotations,PreconnectToSearch,Translate',
  'InitialWebUI,WebUIReloadButton',
];

/**
 * Playwright's default flags for headless Chromium; repeated here, because its list cannot be changed in part. One is
 * needed: /dev/shm is too small on small machines and in containers.
 */
const DRIVEN = (
  '--headless --remote-debugging-pipe --no-startup-window --allow-pre-commit-input --disable-background-networking ' +
  '--disable-background-timer-throttling --disable-backgrounding-occluded-windows --disable-back-forward-cache ' +
  '--disable-breakpad --disable-component-extensions-with-background-pages --disable-component-update ' +
  '--disable-default-apps --disable-dev-shm-usage --disable-extensions --disable-field-trial-config ' +
  '--disable-hang-monitor --disable-infobars --disable-ipc-flooding-protection --disable-popup-blocking ' +
  '--disable-prompt-on-repost --disable-renderer-backgrounding --disable-search-engine-choice-screen ' +
  '--enable-features=SkipListAccountsWithoutGaiaCookies --force-color-profile=srgb --hide-scrollbars ' +
  '--metrics-recording-only --mute-audio --no-default-browser-check --no-first-run --no-service-autorun ' +
  '--password-store=basic --use-mock-keychain'
).split(' ');

const OURS = [
  // No image of any kind, whatever its URL.
  '--blink-settings=imagesEnabled=false',
  // Only TCP through the proxy: no UDP, no DNS lookups by Chromium itself.
  '--proxy-bypass-list=<-loopback>',
  '--disable-quic',
  '--force-webrtc-ip-handling-policy=disable_non_proxied_udp',
  '--webrtc-ip-handling-policy=disable_non_proxied_udp',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
  '--dns-prefetch-disable',
  '--no-pings',
  // No requests to Google's services.
  '--disable-sync',
  '--disable-domain-reliability',
  '--disable-client-side-phishing-detection',
  '--disable-crash-reporter',
  // One renderer for a page and its frames: half the memory. A crawler's page has nothing that a frame of another site
  // could steal.
  '--disable-site-isolation-trials',
  '--renderer-process-limit=1',
  '--deny-permission-prompts',
  '--disable-notifications',
  '--disable-gpu',
  // The page is never displayed: a compositor thread would use a fifth of all processor time for unseen frames.
  '--disable-threaded-compositing',
  '--disable-speech-api',
  '--disable-print-preview',
  '--disk-cache-size=33554432',
  `--disable-features=${DISABLED_FEATURES.join(',')}`,
];

export function chromiumFlags({ userAgent, profile, proxyUrl, isRoot }: FlagOptions): string[] {
  return [
    ...DRIVEN,
    ...OURS,
    `--user-data-dir=${profile}`,
    `--user-agent=${userAgent}`,
    `--proxy-server=${proxyUrl}`,
    // Chromium refuses to start as root with its sandbox. On an instance it runs as an unprivileged user, sandboxed.
    ...(isRoot ? ['--no-sandbox'] : []),
  ];
}
