// The default theme without its font, which would be 100 KB a page: the font of the system is used.

import { useData } from "vitepress";
import Theme from "vitepress/theme-without-fonts";
import { watchPostEffect } from "vue";
import "./site.css";

export default {
  extends: Theme,
  setup() {
    const { isDark, page } = useData();
    // Pictures that follow the system in the repository follow the switch here.
    watchPostEffect(() => {
      void page.value.relativePath;
      const media = isDark.value ? "all" : "not all";
      document.querySelectorAll("picture source[media*=prefers-color-scheme], picture source[data-dark]").forEach((source) => {
        source.dataset.dark = "";
        source.media = media;
      });
    });
  },
};
